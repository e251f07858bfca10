import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ttutor.translation.export import load_exported

folder, port = sys.argv[1], int(sys.argv[2])
translator = load_exported(folder)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # a client may keep its connection
    wbufsize = -1  # head and body leave together

    def do_POST(self):
        sentence = self.rfile.read(int(self.headers["Content-Length"])).decode()
        answer = translator(sentence).text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *parts):
        """Say nothing of each request."""


ThreadingHTTPServer.request_queue_size = 128  # clients that may knock at the same moment
ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
