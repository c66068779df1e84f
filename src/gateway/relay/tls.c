/* TLS with OpenSSL. */
#include "gateway/relay/tls.h"

#include "util/error.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>

struct spill_tls_context {
    SSL_CTX *ssl;
    bool checks_host;
};

struct spill_tls_session {
    SSL *ssl;
    BIO *in, *out; /* the session's own */
};

/* ---- contexts -------------------------------------------------------------------------------- */

static const char *last_cause(char *text, size_t size)
{
    unsigned long code = ERR_get_error();
    ERR_clear_error();
    if (code == 0)
        return "no cause is known";
    const char *reason = ERR_reason_error_string(code);
    snprintf(text, size, "%s", reason ? reason : "an unknown error");
    return text;
}

static spill_code_t fail_file(const char *what, const char *path, spill_error_t *error)
{
    char cause[128];
    return spill_fail(error, SPILL_INVALID, "the %s in %s cannot be used for TLS: %s", what, path,
                      last_cause(cause, sizeof cause));
}

static int give_password(char *buffer, int size, int writing, void *password)
{
    (void)writing;
    if (!password)
        return 0;
    size_t length = strlen(password);
    if (length > (size_t)size)
        return 0;
    memcpy(buffer, password, length);
    return (int)length;
}

static spill_code_t use_certificate(SSL_CTX *ssl, const char *certificate, const char *key,
                                    spill_error_t *error)
{
    if (SSL_CTX_use_certificate_chain_file(ssl, certificate) != 1)
        return fail_file("certificate", certificate, error);
    if (SSL_CTX_use_PrivateKey_file(ssl, key, SSL_FILETYPE_PEM) != 1)
        return fail_file("private key", key, error);
    if (SSL_CTX_check_private_key(ssl) != 1)
        return fail_file("private key", key, error);
    return SPILL_OK;
}

static spill_code_t use_authority(SSL_CTX *ssl, const char *authority, spill_error_t *error)
{
    if (!authority)
        return SSL_CTX_set_default_verify_paths(ssl) == 1
                   ? SPILL_OK
                   : fail_file("certificate", "the system's folder of authorities", error);
    if (SSL_CTX_load_verify_locations(ssl, authority, NULL) != 1)
        return fail_file("certificate of the authority", authority, error);
    return SPILL_OK;
}

/* NULL: no memory. */
static spill_tls_context_t *make_context(const SSL_METHOD *method, spill_error_t *error)
{
    SSL_CTX *ssl = SSL_CTX_new(method);
    if (!ssl) {
        spill_fail(error, SPILL_NO_MEMORY, "there is no memory for TLS");
        return NULL;
    }
    SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS); /* idle sessions keep no buffers */
    spill_tls_context_t *context = bson_malloc0(sizeof *context);
    context->ssl = ssl;
    return context;
}

spill_code_t spill_tls_serve(const char *certificate, const char *key, const char *authority,
                             spill_tls_client_t client, spill_tls_context_t **context,
                             spill_error_t *error)
{
    static const int modes[] = {[SPILL_TLS_CLIENT_NONE] = SSL_VERIFY_NONE,
                                [SPILL_TLS_CLIENT_ASK] = SSL_VERIFY_PEER,
                                [SPILL_TLS_CLIENT_REQUIRE] =
                                    SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT};
    static const unsigned char id[] = "spillway";
    *context = make_context(TLS_server_method(), error);
    if (!*context)
        return SPILL_NO_MEMORY;
    SSL_CTX *ssl = (*context)->ssl;
    SPILL_TRY(use_certificate(ssl, certificate, key ? key : certificate, error));
    if (client != SPILL_TLS_CLIENT_NONE) {
        SPILL_TRY(use_authority(ssl, authority, error));
        if (authority)
            SSL_CTX_set_client_CA_list(ssl, SSL_load_client_CA_file(authority));
    }
    SSL_CTX_set_verify(ssl, modes[client], NULL);
    SSL_CTX_set_session_id_context(ssl, id, sizeof id - 1);
    return SPILL_OK;
}

spill_code_t spill_tls_connect(const spill_upstream_tls_t *options, spill_tls_context_t **context,
                               spill_error_t *error)
{
    *context = make_context(TLS_client_method(), error);
    if (!*context)
        return SPILL_NO_MEMORY;
    SSL_CTX *ssl = (*context)->ssl;
    (*context)->checks_host = !options->any_host;
    if (!options->any_certificate)
        SPILL_TRY(use_authority(ssl, options->authority_file, error));
    SSL_CTX_set_verify(ssl, options->any_certificate ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (!options->certificate_file)
        return SPILL_OK;
    SSL_CTX_set_default_passwd_cb(ssl, give_password);
    SSL_CTX_set_default_passwd_cb_userdata(ssl, (void *)options->password);
    return use_certificate(ssl, options->certificate_file, options->certificate_file, error);
}

void spill_tls_context_free(spill_tls_context_t *context)
{
    if (!context)
        return;
    SSL_CTX_free(context->ssl);
    bson_free(context);
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* The certificate must have the name, or the address if `host` is one. */
static bool expect_host(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *parameters = SSL_get0_param(ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1)
        return true;
    ERR_clear_error();
    return SSL_set1_host(ssl, host) == 1;
}

spill_tls_session_t *spill_tls_session_new(const spill_tls_context_t *context, const char *host)
{
    spill_tls_session_t *session = bson_malloc0(sizeof *session);
    session->ssl = SSL_new(context->ssl);
    session->in = BIO_new(BIO_s_mem());
    session->out = BIO_new(BIO_s_mem());
    if (!session->ssl || !session->in || !session->out) {
        SSL_free(session->ssl);
        BIO_free(session->in);
        BIO_free(session->out);
        bson_free(session);
        return NULL;
    }
    BIO_set_mem_eof_return(session->in, -1);
    SSL_set_bio(session->ssl, session->in, session->out);
    if (!host) {
        SSL_set_accept_state(session->ssl);
        return session;
    }
    SSL_set_connect_state(session->ssl);
    SSL_set_tlsext_host_name(session->ssl, host);
    if (context->checks_host && !expect_host(session->ssl, host)) {
        spill_tls_session_free(session);
        return NULL;
    }
    return session;
}

void spill_tls_session_free(spill_tls_session_t *session)
{
    if (!session)
        return;
    SSL_free(session->ssl);
    bson_free(session);
}

void spill_tls_receive(spill_tls_session_t *session, const uint8_t *bytes, size_t size)
{
    BIO_write(session->in, bytes, (int)size); /* a BIO in memory accepts all bytes */
}

spill_tls_state_t spill_tls_handshake(spill_tls_session_t *session, char *why, size_t why_bytes)
{
    ERR_clear_error();
    int done = SSL_do_handshake(session->ssl);
    if (done == 1)
        return SPILL_TLS_OPEN;
    int cause = SSL_get_error(session->ssl, done);
    if (cause == SSL_ERROR_WANT_READ || cause == SSL_ERROR_WANT_WRITE)
        return SPILL_TLS_WAITS;
    long verified = SSL_get_verify_result(session->ssl);
    char text[128];
    snprintf(why, why_bytes, "the TLS handshake failed: %s",
             verified == X509_V_OK ? last_cause(text, sizeof text)
                                   : X509_verify_cert_error_string(verified));
    ERR_clear_error();
    return SPILL_TLS_FAILED;
}

int spill_tls_read(spill_tls_session_t *session, uint8_t *bytes, size_t size)
{
    ERR_clear_error();
    int got = SSL_read(session->ssl, bytes, size > INT_MAX ? INT_MAX : (int)size);
    if (got > 0)
        return got;
    return SSL_get_error(session->ssl, got) == SSL_ERROR_WANT_READ ? 0 : -1;
}

bool spill_tls_ended(const spill_tls_session_t *session)
{
    return (SSL_get_shutdown(session->ssl) & SSL_RECEIVED_SHUTDOWN) != 0;
}

bool spill_tls_write(spill_tls_session_t *session, const uint8_t *bytes, size_t size)
{
    ERR_clear_error();
    size_t written;
    return size == 0 || SSL_write_ex(session->ssl, bytes, size, &written) == 1;
}

void spill_tls_end(spill_tls_session_t *session)
{
    ERR_clear_error();
    if (SSL_is_init_finished(session->ssl))
        SSL_shutdown(session->ssl);
}

const uint8_t *spill_tls_output(spill_tls_session_t *session, size_t *size)
{
    char *bytes = NULL;
    long length = BIO_get_mem_data(session->out, &bytes);
    *size = length > 0 ? (size_t)length : 0;
    return (const uint8_t *)bytes;
}

void spill_tls_taken(spill_tls_session_t *session)
{
    (void)BIO_reset(session->out);
}
