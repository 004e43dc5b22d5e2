// Texts of an attacker: markup, scripts, broken encodings, control and direction characters, endings of our own markers.
const PIECES = [
  "<script>globalThis.pwned=1</script>", "</script><script>globalThis.pwned=1</script>", "<img src=x onerror=\"globalThis.pwned=1\">",
  "<svg onload=globalThis.pwned=1>", "<svg><script>globalThis.pwned=1</script></svg>", "<iframe srcdoc=\"<script>parent.pwned=1</script>\">",
  "<a href=\"javascript:globalThis.pwned=1\">x</a>", "\"><script>globalThis.pwned=1</script>", "'><img src=x onerror=globalThis.pwned=1>",
  "`;globalThis.pwned=1;`", "${globalThis.pwned=1}", "{{globalThis.pwned=1}}", "{% raw %}<script>globalThis.pwned=1</script>",
  "<!--/live jobs--><script>globalThis.pwned=1</script>", "<!--live head-->", "--><script>globalThis.pwned=1</script>",
  "<style>*{display:none}</style>", "<link rel=stylesheet href=//evil.example/x.css>", "<meta http-equiv=refresh content=\"0;url=//evil.example\">",
  "<base href=//evil.example/>", "<form action=//evil.example><input name=csrf>", "<object data=//evil.example></object>",
  "<math><mtext></form><form><mglyph><style></math><img src onerror=globalThis.pwned=1>", "<details open ontoggle=globalThis.pwned=1>",
  "<input autofocus onfocus=globalThis.pwned=1>", "<video><source onerror=globalThis.pwned=1></video>", "<body onload=globalThis.pwned=1>",
  "</title><script>globalThis.pwned=1</script>", "</textarea><script>globalThis.pwned=1</script>", "</pre><script>globalThis.pwned=1</script>",
  "</td></tr></table><script>globalThis.pwned=1</script>", "&lt;script&gt;globalThis.pwned=1&lt;/script&gt;", "&#60;script&#62;", "%3Cscript%3E",
  "\u202eevil\u202c", "\u2066<b>\u2069", "\u200b\u200c\u200d", "a\u0301\u0302\u0303\u0304".repeat(10), "\ufffe\uffff", "🙂".repeat(40),
  "data: x\n\nevent: region\ndata: jobs\ndata: <script>globalThis.pwned=1</script>", "line\r\nSet-Cookie: a=b", "'; DROP TABLE jobs; --",
  "../../../../etc/passwd", "//evil.example", "\\\\evil\\share", "x".repeat(3000), "<".repeat(500), "\"".repeat(300), "' onmouseover='globalThis.pwned=1",
];
const WRAPS = [(text) => text, (text) => text.toUpperCase(), (text) => `a ${text} b`, (text) => text.replaceAll("<", "\uff1c").replaceAll(">", "\uff1e")];

/** Two hundred of them. */
export const NASTY = WRAPS.flatMap((wrap) => PIECES.map(wrap)).slice(0, 200).map((text) => text.replaceAll("\u0000", ""));
