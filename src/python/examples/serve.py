"""Answers over HTTP with the words nearest to a word: `python serve.py runs/my 8080`, then `curl 'localhost:8080/?word=sin&k=5'`."""
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import sptx


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        asked = dict(parse_qs(urlsplit(self.path).query))
        try:
            code, said = 200, self.server.run.nearest(asked["word"][0], k=int(asked.get("k", ["10"])[0]))
        except (KeyError, ValueError) as problem:
            code, said = 404 if isinstance(problem, KeyError) else 400, {"error": str(problem)}
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(said).encode())


def serve(run, port):
    server = HTTPServer(("127.0.0.1", port), Answer)
    server.run = sptx.Run(run)
    return server


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2])).serve_forever()
