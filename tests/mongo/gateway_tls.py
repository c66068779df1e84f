"""gateway_tls.py FOLDER: TLS between clients and the gateway, and between the gateway and a server.

FOLDER has ours.ca.pem, theirs.ca.pem, good.pem, good.key and client.both.pem, which ours has signed.
"""

import os
import signal
import ssl
import sys

from gateway_lib import Gateway, Server, body_of, message, receive, run, wait_until

FOLDER = sys.argv[1]
PING = message({"ping": 1, "$db": "app"})


def path(name):
    return os.path.join(FOLDER, name)


def client_context(authority="ours", certificate=None):
    context = ssl.create_default_context(cafile=path(f"{authority}.ca.pem"))
    if certificate:
        context.load_cert_chain(path(certificate))
    return context


def ping(gateway, context):
    """Does a ping over TLS work?"""
    try:
        with context.wrap_socket(gateway.connect(), server_hostname="127.0.0.1") as end:
            end.sendall(PING)
            return body_of(receive(end))["ok"] == 1
    except (ssl.SSLError, ConnectionError, EOFError):
        return False


def start(server, *options):
    return Gateway(f"mongodb://127.0.0.1:{server.port}/d", "--tls-cert", path("good.pem"),
                   "--tls-key", path("good.key"), *options)


def clients_use_tls():
    server = Server()
    gateway = start(server)
    assert "tls=true" in gateway.line
    assert ping(gateway, client_context())
    assert not ping(gateway, client_context("theirs"))
    with gateway.connect() as plain:
        plain.sendall(PING)
        try:
            while plain.recv(100):
                pass
        except ConnectionError:
            pass
    big = message({"insert": "c", "$db": "app"}, [("documents", [{"x": os.urandom(5 << 20)}])])
    with client_context().wrap_socket(gateway.connect(), server_hostname="127.0.0.1") as end:
        end.sendall(big)
        receive(end)
        end.sendall(message({"big": 1, "$db": "app"}))
        assert receive(end) == server.sent[-1]
    assert server.received[1] == big
    gateway.stop()


def clients_have_certificates():
    server = Server()
    gateway = start(server, "--tls-ca", path("ours.ca.pem"), "--tls-client", "require")
    assert ping(gateway, client_context(certificate="client.both.pem"))
    assert not ping(gateway, client_context())
    gateway.stop()
    gateway = start(server, "--tls-ca", path("ours.ca.pem"), "--tls-client", "ask")
    assert ping(gateway, client_context())
    gateway.stop()


def certificates_are_reloaded():
    server = Server()
    gateway = start(server)
    for name in ("good.pem", "good.key"):
        os.rename(path(name), path("first." + name))
        os.rename(path(name.replace("good", "second")), path(name))
    assert ping(gateway, client_context())
    gateway.send_signal(signal.SIGHUP)
    wait_until("the certificates are reloaded", lambda: '"event" : "reload"' in gateway.log_text())
    assert ping(gateway, client_context("theirs")) and not ping(gateway, client_context())
    os.remove(path("good.pem"))
    gateway.send_signal(signal.SIGHUP)
    wait_until("the failure is logged",
               lambda: "certificates not reloaded" in gateway.log_text())
    assert ping(gateway, client_context("theirs"))
    for name in ("good.pem", "good.key"):
        os.rename(path("first." + name), path(name))
    gateway.stop()


def server_uses_tls():
    """tls_proxy.py, which test_gateway_tls.sh starts, stands before a server."""
    uri = os.environ["SECURE_URI"]
    gateway = Gateway(f"{uri}&tlsCAFile={path('ours.ca.pem')}")
    assert gateway.ask({"ping": 1, "$db": "admin"})["ok"] == 1
    gateway.stop()


run([clients_use_tls, clients_have_certificates, server_uses_tls, certificates_are_reloaded])
