// SPDX-License-Identifier: LGPL-2.1-or-later
/* IMA signatures by OpenSSL: certificates of signers, digests, verification. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "api/signature.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"

enum {
	PIECE = 128 << 10, /* bytes to hash at a time */
	CERTIFICATE_MAX = 64 << 10, /* bytes of a file with a certificate */
	KEY_ID = 4, /* bytes */
	HEADER = 9, /* bytes of a signature before the signature of OpenSSL */
};

struct key {
	EVP_PKEY *key; /* owned */
	char *path; /* path of its certificate; owned */
	unsigned char id[KEY_ID];
};

struct bid_signers {
	struct key *keys; /* owned */
	size_t n, room;
};

/* The last bytes of the subject key identifier; without one, of the SHA-1 of the public key. */
static bool get_key_id(const X509 *certificate, EVP_PKEY *key, unsigned char id[static KEY_ID])
{
	const ASN1_OCTET_STRING *subject = certificate ? X509_get0_subject_key_id((X509 *)certificate) : NULL;
	unsigned char digest[EVP_MAX_MD_SIZE];
	const unsigned char *bytes = NULL;
	X509_PUBKEY *public = NULL;
	unsigned size = 0;
	int len = 0;

	if (subject && ASN1_STRING_length(subject) >= KEY_ID) {
		memcpy(id, ASN1_STRING_get0_data(subject) + ASN1_STRING_length(subject) - KEY_ID, KEY_ID);
		return true;
	}
	if (X509_PUBKEY_set(&public, key) == 1 && X509_PUBKEY_get0_param(NULL, &bytes, &len, NULL, public) == 1 &&
	    EVP_Digest(bytes, (size_t)len, digest, &size, EVP_sha1(), NULL) == 1)
		memcpy(id, digest + size - KEY_ID, KEY_ID);
	X509_PUBKEY_free(public);
	return size > 0;
}

/* pem_password_cb: OpenSSL would ask for the password of an encrypted file at the terminal. */
static int give_no_password(char *password, int size, int writes, void *user)
{
	return -1;
}

/* Returns the certificate in @text, DER or PEM, or NULL. */
static X509 *parse_certificate(const char *text, size_t len)
{
	const unsigned char *der = (const unsigned char *)text;
	X509 *certificate = d2i_X509(NULL, &der, (long)len);
	BIO *bio = certificate ? NULL : BIO_new_mem_buf(text, (int)len);

	if (bio)
		certificate = PEM_read_bio_X509(bio, NULL, give_no_password, NULL);
	BIO_free(bio);
	return certificate;
}

static EVP_PKEY *parse_public_key(const char *text, size_t len)
{
	BIO *bio = BIO_new_mem_buf(text, (int)len);
	EVP_PKEY *key = bio ? PEM_read_bio_PUBKEY(bio, NULL, give_no_password, NULL) : NULL;

	BIO_free(bio);
	return key;
}

/* Add the key in @text, which is the file @path. Returns 0, -EBADMSG or -ENOMEM. */
static int add_key(struct bid_signers *signers, const char *path, const char *text, size_t len)
{
	X509 *certificate = parse_certificate(text, len);
	struct key key = { .key = certificate ? X509_get_pubkey(certificate) : parse_public_key(text, len), .path = strdup(path) };
	int r = key.path ? 0 : -ENOMEM;

	if (r == 0 && (!key.key || !get_key_id(certificate, key.key, key.id)))
		r = -EBADMSG;
	if (r == 0)
		r = bid_array_grow(signers->keys, signers->n, signers->room);
	if (r == 0 && certificate && X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
		bid_warning("the certificate '%s' has expired: bidfs uses it, as libdebuginfod does", path);
	X509_free(certificate);
	if (r < 0) {
		EVP_PKEY_free(key.key);
		free(key.path);
		return r;
	}
	signers->keys[signers->n++] = key;
	return 0;
}

static int is_certificate(const struct dirent *entry)
{
	static const char *const suffixes[] = { ".der", ".pem", ".crt", ".cer", ".cert" };
	const char *suffix = strrchr(entry->d_name, '.');

	for (size_t i = 0; suffix && i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (strcmp(suffix, suffixes[i]) == 0)
			return true;
	return false;
}

/* Add the key of a file. Returns 0, also after a warning, or -ENOMEM. */
static int add_file(struct bid_signers *signers, const char *directory, const char *name)
{
	bid_auto_free char *path = NULL, *text = NULL;
	bid_auto_fd int fd = -1;
	size_t len = 0;
	int r;

	if (asprintf(&path, "%s/%s", directory, name) < 0)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	r = fd < 0 ? -errno : bid_read_file(fd, CERTIFICATE_MAX, &text, &len);
	if (r == 0)
		r = add_key(signers, path, text, len);
	if (r < 0 && r != -ENOMEM)
		bid_warning("%s: bidfs ignores '%s'", r == -EBADMSG ? "no certificate" : strerror(-r), path);
	return r == -ENOMEM ? r : 0;
}

static int add_directory(struct bid_signers *signers, const char *path)
{
	struct dirent **entries;
	int n = scandir(path, &entries, is_certificate, alphasort), r = 0;

	if (n < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = add_file(signers, path, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return r;
}

int bid_signers_load(const char *path, struct bid_signers **ret_signers)
{
	struct bid_signers *signers = calloc(1, sizeof(*signers));
	bid_auto_free char *paths = strdup(path);
	char *next = paths;
	int r = signers && paths ? 0 : -ENOMEM;

	for (const char *directory; r == 0 && (directory = strsep(&next, ":"));)
		r = add_directory(signers, directory);
	if (r < 0) {
		bid_signers_free(signers);
		return r;
	}
	if (signers->n == 0)
		bid_warning("no certificate in '%s' (DEBUGINFOD_IMA_CERT_PATH): bidfs accepts nothing from a server with "
			    "ima:enforcing",
			    path);
	*ret_signers = signers;
	return 0;
}

void bid_signers_free(struct bid_signers *signers)
{
	for (size_t i = 0; signers && i < signers->n; i++) {
		EVP_PKEY_free(signers->keys[i].key);
		free(signers->keys[i].path);
	}
	if (signers)
		free(signers->keys);
	free(signers);
}

struct digest {
	unsigned char bytes[EVP_MAX_MD_SIZE];
	unsigned size;
};

/* Compute the digest of the file @fd; with -1, only prepare for it. */
static int digest_file(int fd, const EVP_MD *algorithm, struct digest *ret_digest)
{
	bid_auto_free char *piece = malloc(PIECE);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	ssize_t got = fd < 0 ? 0 : PIECE;
	int r = piece && context ? 0 : -ENOMEM;

	if (r == 0 && EVP_DigestInit_ex(context, algorithm, NULL) != 1)
		r = -EOPNOTSUPP;
	for (off_t at = 0; r == 0 && got == PIECE; at += got) {
		got = bid_pread_full(fd, piece, PIECE, at);
		if (got < 0)
			r = (int)got;
		else if (EVP_DigestUpdate(context, piece, (size_t)got) != 1)
			r = -ENOMEM;
	}
	if (r == 0 && EVP_DigestFinal_ex(context, ret_digest->bytes, &ret_digest->size) != 1)
		r = -ENOMEM;
	EVP_MD_CTX_free(context);
	return r;
}

int bid_file_digest(int fd, enum bid_file_digest algorithm, char ret_hex[static BID_FILE_DIGEST_MAX])
{
	struct digest digest;
	int r = digest_file(fd, algorithm == BID_FILE_MD5 ? EVP_md5() : EVP_sha256(), &digest);

	for (unsigned i = 0; r == 0 && i < digest.size; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", digest.bytes[i]);
	return r;
}

static void cleanup_bytes(unsigned char **bytes)
{
	OPENSSL_free(*bytes);
}

/* The algorithms of enum pkey_hash_algo in the kernel that are in use. Returns NULL for another one. */
static const EVP_MD *algorithm_of(unsigned char number)
{
	switch (number) {
	case 2:
		return EVP_sha1();
	case 4:
		return EVP_sha256();
	case 5:
		return EVP_sha384();
	case 6:
		return EVP_sha512();
	default:
		return NULL;
	}
}

static bool is_signed(EVP_PKEY *key, const EVP_MD *algorithm, const unsigned char *digest, unsigned size,
		      const unsigned char *signature, size_t len)
{
	EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(key, NULL);
	bool is = context && EVP_PKEY_verify_init(context) == 1 && EVP_PKEY_CTX_set_signature_md(context, algorithm) == 1 &&
		  EVP_PKEY_verify(context, signature, len, digest, size) == 1;

	EVP_PKEY_CTX_free(context);
	return is;
}

int bid_signers_check(const struct bid_signers *signers, int fd, const char *signature, char *ret_text, size_t size)
{
	long len = 0;
	bid_cleanup(cleanup_bytes) unsigned char *bytes = signature ? OPENSSL_hexstr2buf(signature, &len) : NULL;
	const EVP_MD *algorithm = NULL;
	const unsigned char *id;
	struct digest digest;
	bool known = false;
	char hex[2 * KEY_ID + 1];
	int r;

	if (!signature) {
		snprintf(ret_text, size, "no signature, which ima:enforcing requires");
		return -EBADMSG;
	}
	/* the type 3 (EVM_IMA_XATTR_DIGSIG), the version, the algorithm, the key, and the size, which is big-endian */
	if (!bytes || len <= HEADER || bytes[0] != 3 || bytes[1] != 2 || (bytes[7] << 8 | bytes[8]) != len - HEADER ||
	    !(algorithm = algorithm_of(bytes[2]))) {
		snprintf(ret_text, size, "a signature that is truncated, or has an unknown form");
		return -EBADMSG;
	}
	id = bytes + 3;
	snprintf(hex, sizeof(hex), "%02x%02x%02x%02x", id[0], id[1], id[2], id[3]);
	for (size_t i = 0; i < signers->n; i++) {
		const struct key *key = &signers->keys[i];

		if (memcmp(key->id, id, KEY_ID) != 0)
			continue;
		r = known ? 0 : digest_file(fd, algorithm, &digest);
		if (r < 0)
			return r;
		known = true;
		if (is_signed(key->key, algorithm, digest.bytes, digest.size, bytes + HEADER, (size_t)len - HEADER)) {
			snprintf(ret_text, size, "key %s of '%s'", hex, key->path);
			return 0;
		}
	}
	snprintf(ret_text, size,
		 known ? "the signature with the key %s is not that of these bytes"
		       : "signed with the key %s, of which there is no certificate",
		 hex);
	return -EBADMSG;
}
