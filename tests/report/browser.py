"""A headless Chromium, driven over the DevTools protocol with the standard library."""

import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any, Self

import numpy as np

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--remote-debugging-port=0")


class Browser:
    """One page in a browser; console messages, errors and requests are recorded in `events`."""

    def __init__(self, page: Path, profile: Path) -> None:
        command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        lines = self.process.stderr or ()
        port = next(int(match[1]) for line in lines if (match := re.search(r"ws://[\d.]+:(\d+)/", line)))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            tab = next(entry for entry in json.load(answer) if entry["type"] == "page")
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.buffer, self.number, self.url = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        self._open(tab["webSocketDebuggerUrl"].partition(f":{port}")[2], port)
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=1400, height=900, deviceScaleFactor=1, mobile=False)
        self.open(page)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait()

    def open(self, page: Path) -> None:
        """Open another page and wait until it is drawn; events of the page before are forgotten."""
        self.events.clear()
        self.url = page.as_uri()
        self.call("Page.navigate", url=self.url)
        self.wait_for("document.body && document.body.dataset.ready === 'done'")

    def _open(self, path: str, port: int) -> None:
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"{head}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(4096)
        self.buffer = self.buffer.partition(b"\r\n\r\n")[2]

    def _read(self, count: int) -> bytes:
        while len(self.buffer) < count:
            self.buffer += self.socket.recv(2**16)
        part, self.buffer = self.buffer[:count], self.buffer[count:]
        return part

    def _receive(self) -> dict[str, Any]:
        text, is_final = b"", 0
        while not is_final:
            first, second = self._read(2)
            size = second & 127
            if size > 125:
                size = struct.unpack(">H" if size == 126 else ">Q", self._read(2 if size == 126 else 8))[0]
            text, is_final = text + self._read(size), first & 128
        return json.loads(text)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self.number += 1
        text = json.dumps({"id": self.number, "method": method, "params": params}).encode()
        mask = os.urandom(4)
        short, long = struct.pack(">BH", 254, len(text) % 2**16), struct.pack(">BQ", 255, len(text))
        size = bytes([128 | len(text)]) if len(text) < 126 else short if len(text) < 2**16 else long
        self.socket.sendall(b"\x81" + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(text)))
        while True:
            message = self._receive()
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def evaluate(self, code: str) -> Any:
        """Return the value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_for(self, code: str, seconds: float = 30) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(code):
            assert time.monotonic() < end, f"not true after {seconds} s: {code}"
            time.sleep(0.05)

    def center(self, selector: str) -> tuple[float, float, float, float]:
        """Scroll to an element; return its center, width and height."""
        code = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{code}.scrollIntoView({{block: 'center'}})")
        box = self.evaluate(f"(({{x, y, width, height}}) => [x, y, width, height])({code}.getBoundingClientRect())")
        return box[0] + box[2] / 2, box[1] + box[3] / 2, box[2], box[3]

    def move(self, x: float, y: float) -> None:
        """Move the mouse."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x: float, y: float) -> None:
        """Press and release the left button."""
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Press and release a key that writes a letter."""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def pixels(self, selector: str, height: int, width: int) -> np.ndarray:
        """Return the colors of a picture that the page shows enlarged by a whole factor, (height, width, 3)."""
        code = f"""(() => {{
          const canvas = document.querySelector({json.dumps(selector)}), factor = canvas.width / {width};
          const copy = document.createElement("canvas");
          [copy.width, copy.height] = [canvas.width, canvas.height];
          const context = copy.getContext("2d", {{ willReadFrequently: true }});
          context.drawImage(canvas, 0, 0);
          const {{ data }} = context.getImageData(0, 0, canvas.width, canvas.height);
          const color = (row, column) => [0, 1, 2].map((c) => data[4 * factor * (row * canvas.width + column) + c]);
          return Array.from({{length: {height * width}}}, (_, i) => color(Math.floor(i / {width}), i % {width}));
        }})()"""
        return np.array(self.evaluate(code)).reshape(height, width, 3)

    def problems(self) -> list[str]:
        """Return console messages, errors, and requests for anything but the page itself."""
        texts = []
        for event in self.events:
            if event["method"] in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
                texts.append(json.dumps(event["params"]))
            elif event["method"] == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                texts += [] if url.startswith(("data:", self.url)) else [url]
        return texts
