"""A headless Chromium for tests of pages. It is controlled over two pipes (--remote-debugging-pipe): JSON messages, each followed
by a NUL. Only Python's own library is needed."""
import base64
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36,
        "End": 35}


def find():
    """Returns the path of Chromium, or None. Ubuntu's chromium is a snap, which may be unable to see a test's files."""
    for name in NAMES:
        path = shutil.which(name)
        if path and "/snap" not in os.path.realpath(path):
            return path
    return None


class Browser:
    """One page. `said` collects the messages of its console, and `asked` its requests to the network."""

    def __init__(self, directory):
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        self.log = open(os.path.join(directory, "chromium.log"), "wb")
        # The pipes are file descriptors 3 and 4. Chromium has no sandbox if it runs as root, and containers have a very small
        # /dev/shm.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "bash", find(), "--headless", "--no-sandbox",
             "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             f"--user-data-dir={directory}/chromium", "about:blank"],
            pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        os.close(to_read)
        os.close(to_write)
        self.number, self.waiting, self.session = 0, b"", None
        self.said, self.asked, self.loads = [], [], 0
        target = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def close(self):
        os.close(self.write_end)
        os.close(self.read_end)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    # ---- messages ----

    def message(self, seconds):
        """Returns the next message from the browser."""
        end = time.monotonic() + seconds
        while b"\0" not in self.waiting:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                raise TimeoutError("the browser said nothing")
            more = os.read(self.read_end, 1 << 16)
            if not more:
                raise EOFError("the browser ended; see chromium.log beside the test's files")
            self.waiting += more
        text, self.waiting = self.waiting.split(b"\0", 1)
        return json.loads(text)

    def hear(self, message):
        method, told = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self.loads += 1
        elif method == "Runtime.exceptionThrown":
            self.said.append(json.dumps(told["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.said.append(told["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.said.append(json.dumps(told["args"]))
        elif method == "Network.requestWillBeSent":
            self.asked.append(told["request"]["url"])

    def ask(self, method, seconds=60, **arguments):
        self.number += 1
        message = {"id": self.number, "method": method, "params": arguments}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            got = self.message(seconds)
            if got.get("id") == self.number:
                assert "error" not in got, (method, got["error"])
                return got["result"]
            self.hear(got)

    # ---- the page ----

    def open(self, path, width=1280, height=900, dark=False):
        """Opens a file, and waits until the page is loaded and has drawn itself."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.dark(dark)
        before = self.loads
        self.ask("Page.navigate", url="about:blank")
        self.wait_for_load(before)
        before = self.loads
        self.ask("Page.navigate", url=path if "://" in str(path) else f"file://{path}")
        self.wait_for_load(before)
        self.settle()

    def wait_for_load(self, before):
        while self.loads == before:
            self.hear(self.message(60))

    def settle(self):
        """Waits for two frames. By then the page has noticed changes of size, and has drawn its canvas."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def dark(self, dark):
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def run(self, script):
        """Returns the value of a JavaScript expression in the page."""
        got = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def type(self, text):
        self.ask("Input.insertText", text=text)

    def key(self, key, shift=False):
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = KEYS.get(key, ord(key.upper()) if len(key) == 1 else 0)
        what = {"key": key, "code": key if key in KEYS else "", "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, unmodifiedText=text, **what)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **what)

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1, **more)

    def picture(self, path, whole=False):
        got = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(got["data"]))
