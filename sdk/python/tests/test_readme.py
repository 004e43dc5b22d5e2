"""The quickstart of the README, and the wheel that users install."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

from conftest import DEADLINE, Server

SDK = Path(__file__).parent.parent


def test_the_quickstart(server: Server, tmp_path: Path) -> None:
    readme = (SDK / "README.md").read_text()
    for name, code in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", readme, re.DOTALL):
        (tmp_path / name).write_text(code)
    expected = re.search(r"\$ python app\.py\n(.*?)```", readme, re.DOTALL)
    assert expected is not None
    environment = os.environ | {"WINDLASS_SERVER": server.url}
    worker = subprocess.Popen([sys.executable, "worker.py"], cwd=tmp_path, env=environment)
    try:
        app = subprocess.run(
            [sys.executable, "app.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
    finally:
        worker.terminate()
    assert (app.stdout, app.stderr) == (expected[1], "")
    assert worker.wait(DEADLINE) == 0


def test_the_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(SDK)]
    subprocess.run(command, check=True, capture_output=True)
    [wheel] = tmp_path.glob("windlass-*.whl")
    venv.create(tmp_path / "fresh", with_pip=False)
    [packages] = (tmp_path / "fresh").glob("lib/python*/site-packages")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(packages)]
    subprocess.run([*install, str(wheel)], check=True)
    check = (
        "import windlass, importlib.resources as r;"
        "print(windlass.__version__, (r.files(windlass) / 'py.typed').is_file())"
    )
    answer = subprocess.run(
        [str(tmp_path / "fresh" / "bin" / "python"), "-I", "-c", check], check=True, capture_output=True, text=True
    )
    assert answer.stdout == "0.1.0 True\n"
