"""tls_proxy.py PORT CERTIFICATE KEY: accept TLS connections and forward them to 127.0.0.1:PORT.

Prints the port on which it listens, and runs until it is killed.
"""

import socket
import ssl
import sys
import threading


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(plain, context, port):
    try:
        client = context.wrap_socket(plain, server_side=True)
    except OSError:  # no handshake: the client does not trust the certificate, or does not use TLS
        plain.close()
        return
    server = socket.create_connection(("127.0.0.1", port))
    threading.Thread(target=pump, args=(server, client), daemon=True).start()
    pump(client, server)


def main():
    port, certificate, key = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, context, port), daemon=True).start()


main()
