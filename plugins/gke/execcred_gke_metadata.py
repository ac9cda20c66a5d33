"""The metadata server of Google Cloud, asked with the layer's own request.

No proxy can come between, a server that is still starting is asked again, and start-up stays short: google-auth's
client for it imports `requests`, costs one or two questions more, and gives up on 404.
"""

from __future__ import annotations

import time

from execcred import BadRequest, ExecCredError, TryAgain
from execcred._json import loads
from execcred_gke import LOGIN, SCOPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from execcred import Env, Settings
    from execcred.http import Response, Server
    from execcred_gke import Entry

ADDRESS = "169.254.169.254"  # by number: off Google Cloud its name may hang in DNS
STARTING = (404, 408, 429, 500, 502, 503, 504)  # what a server answers before it is ready
FOR_EVER = 1e9


class Metadata:
    """One metadata server; `certain` when something says that this is Google Cloud."""

    def __init__(self, settings: Settings, env: Env) -> None:
        self.env = env
        host = settings.text("metadata-host")
        if not host and env.variables.get("NO_GCE_CHECK", "").lower() in ("true", "1"):
            raise _absent("NO_GCE_CHECK says that there is no metadata server")
        self.certain = bool(host) or self._on_google_cloud()
        self.host = host or env.variables.get("GCE_METADATA_IP") or ADDRESS
        self.server = _server(self.host)
        # A pod may start before its node's metadata server does.
        self.patience = FOR_EVER if self.certain else 1.5 if "KUBERNETES_SERVICE_HOST" in env.variables else 0.0

    def _on_google_cloud(self) -> bool:
        if any(self.env.variables.get(name) for name in ("K_SERVICE", "CLOUD_RUN_JOB", "GAE_SERVICE")):
            return True
        try:
            return self.env.read_file("/sys/class/dmi/id/product_name").startswith(b"Google")
        except OSError:
            return False

    def token(self) -> Entry:
        """Return the token of the attached service account and its true end; raises ExecCredError, TryAgain."""
        before = self.env.now()
        body = self.get(f"instance/service-accounts/default/token?scopes={','.join(SCOPES)}").body
        try:
            answer = loads(body.decode())
            token, seconds = answer["access_token"], float(answer["expires_in"])
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            token, seconds = "", 0.0
        if not isinstance(token, str) or not token or not 0 <= seconds < FOR_EVER:
            hint = "check --metadata-host and what answers there"
            raise ExecCredError("metadata-invalid", f"{self.named} answered something that is no token", hint)
        return {"token": token}, before + seconds

    def universe(self) -> str:
        """Return the universe's domain; a server that has no word for it is of the default one."""
        answer = self.get("universe/universe-domain", also=404)
        return answer.body.decode("ascii", "replace").strip() if answer.status == 200 else "googleapis.com"

    @property
    def named(self) -> str:
        """The server, as errors call it."""
        return f"the metadata server at {self.host}"

    def get(self, path: str, also: int = 200) -> Response:
        """Return an answer of status 200 or `also`; asks again while the server may be starting.

        Raises ExecCredError("credentials-none" | "metadata-refused"), TryAgain("metadata-unavailable").
        """
        begun, pause = time.monotonic(), 0.1
        while True:
            self.env.doing(f"asking {self.named}")
            answer, told = self._once(path)
            if answer and answer.headers.get("metadata-flavor") == "google":
                self.certain, self.patience = True, FOR_EVER
                if answer.status in (200, also):
                    return answer
            if answer and self.certain and answer.status not in STARTING:
                raise ExecCredError(
                    "metadata-refused",
                    f"{self.named} {told}" + (", without being Google's" if answer.status == 200 else ""),
                    "on GKE, let the Kubernetes service account act as the Google one (roles/iam.workloadIdentityUser"
                    " and the annotation iam.gke.io/gcp-service-account); on a VM, attach a service account",
                )
            if time.monotonic() - begun >= self.patience:
                raise _absent(f"{self.named} {told}")
            if self.env.remaining() < 2 * pause + 0.2:
                raise TryAgain(
                    "metadata-unavailable",
                    f"{self.named} {told}, and so until the deadline",
                    "try again; if it stays so: is a service account attached, and does a NetworkPolicy allow"
                    f" {ADDRESS}:80 and, on GKE, 169.254.169.252:988?",
                )
            time.sleep(pause * (0.5 + time.monotonic_ns() % 1000 / 1000))  # many pods start at once
            pause = min(2 * pause, 1.0)

    def _once(self, path: str) -> tuple[Response | None, str]:
        """Ask once; return the answer, None when there is none, and words for what happened."""
        from execcred.http import send

        end = time.monotonic() + (3.0 if self.certain else 1.0)

        def left() -> float:
            return min(self.env.remaining() - 0.2, end - time.monotonic())

        try:
            answer = send(self.server, f"/computeMetadata/v1/{path}", {"Metadata-Flavor": "Google"}, left, 65536)
        except TimeoutError:
            return None, "does not answer"
        except OSError as error:
            return None, f"cannot be reached ({error.strerror or type(error).__name__})"
        except ValueError:
            return None, "does not speak HTTP"
        return answer, f"answered {answer.status}"


def _server(host: str) -> Server:
    from execcred._urls import parse_url
    from execcred.http import Server

    try:
        url = parse_url(f"http://{host}")
    except ValueError:
        url = None
    if url is None or url.path or url.userinfo:
        raise BadRequest("setting-invalid", "metadata-host is not a host[:port]", "an IPv6 address goes in brackets")
    return Server(url, None)


def _absent(why: str) -> ExecCredError:
    return ExecCredError(
        "credentials-none",
        f"no Google credentials: no credential file is given, gcloud's is not there, and {why}",
        f"run: {LOGIN}; or set GOOGLE_APPLICATION_CREDENTIALS; on Google Cloud, set"
        " GCE_METADATA_HOST=metadata.google.internal",
    )
