"""A headless Chromium, spoken to over a pipe in its own protocol (CDP): no driver, no other package."""

import base64
import json
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One browser with one page."""

    def __init__(self, folder: Path) -> None:
        """Start it with a profile of its own; skip or fail the test where there is none."""
        if CHROMIUM is None:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("chromium is missing")
        commands, self._to = os.pipe()
        self._from, answers = os.pipe()
        options = [
            *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
            *("--disable-dev-shm-usage", "--disable-background-networking"),
            *(f"--user-data-dir={folder / 'profile'}", "--remote-debugging-pipe", "about:blank"),
        ]
        # The pipe is at descriptors 3 and 4.
        shell = f'exec "$0" "$@" 3<&{commands} 4>&{answers}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", shell, CHROMIUM, *options],
            pass_fds=(commands, answers),
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.errors: list[str] = []
        """What scripts threw, and what the content security policy refused."""
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.requested: list[str] = []
        """Every address asked for."""

    def __enter__(self) -> "Browser":  # noqa: PYI034 - Self is not in Python 3.10
        """Use it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        with suppress(OSError):
            os.close(self._to)
        self._process.terminate()
        self._process.wait(timeout=30)
        os.close(self._from)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask, and return the answer; what comes in between is kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found
                answer: dict[str, Any] = found["result"]
                return answer

    def wait(self, event: str) -> None:
        """Wait for an event."""
        while self._next().get("method") != event:
            pass

    def look(self, width: int, height: int, *, dark: bool = False, scripts: bool = True) -> None:
        """Be a screen of this size."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)

    def open(self, address: str) -> None:
        """Go to a page, and wait until it is loaded."""
        self.call("Page.navigate", url=address)
        self.wait("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def picture(self, file: Path, *, whole: bool = True) -> None:
        """Write what is seen as a PNG."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(found["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._from, 1 << 16)
            assert part, "the browser ended"
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        said = found.get("params", {})
        if found.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(said["exceptionDetails"]))
        if found.get("method") == "Log.entryAdded" and said["entry"]["level"] == "error":
            self.errors.append(said["entry"]["text"])
        if found.get("method") == "Network.requestWillBeSent":
            self.requested.append(said["request"]["url"])
        return found
