import json, sys
from standardwebhooks import Webhook, WebhookVerificationError

given = json.load(sys.stdin)
try:
    Webhook(given["secret"]).verify(given["body"], given["headers"])
    print("ok")
except WebhookVerificationError as error:
    print("refused:", error)
