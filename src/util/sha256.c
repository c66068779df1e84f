/* SHA-256, as FIPS 180-4 describes it; the names are those of the standard. */
#include "util/sha256.h"

#include <string.h>

enum { BLOCK = 64, WORDS = 8, ROUNDS = 64, LENGTH = 8 };

static const uint32_t K[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t word, int bits)
{
    return word >> bits | word << (32 - bits);
}

static void expand(const uint8_t *block, uint32_t w[ROUNDS])
{
    for (int t = 0; t < 16; t++, block += 4)
        w[t] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 |
               (uint32_t)block[3];
    for (int t = 16; t < ROUNDS; t++) {
        uint32_t a = w[t - 15], b = w[t - 2];
        w[t] = (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10) + w[t - 7] +
               (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[t - 16];
    }
}

static void add_block(const uint8_t *block, uint32_t h[WORDS])
{
    uint32_t w[ROUNDS], v[WORDS]; /* v: the working variables a to h */
    expand(block, w);
    memcpy(v, h, sizeof v);
    for (int t = 0; t < ROUNDS; t++) {
        uint32_t e = v[4], a = v[0];
        uint32_t t1 = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                      ((e & v[5]) ^ (~e & v[6])) + K[t] + w[t];
        uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, sizeof v - sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < WORDS; i++)
        h[i] += v[i];
}

void spill_sha256(const void *data, size_t size, uint8_t digest[SPILL_SHA256_BYTES])
{
    uint32_t h[WORDS] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint8_t *at = data;
    uint8_t last[2 * BLOCK] = {0};
    size_t rest = size % BLOCK;
    for (size_t left = size; left >= BLOCK; left -= BLOCK, at += BLOCK)
        add_block(at, h);
    if (rest > 0)
        memcpy(last, at, rest);
    last[rest] = 0x80;
    size_t padded = rest < BLOCK - LENGTH ? BLOCK : 2 * BLOCK;
    uint64_t bits = (uint64_t)size * 8;
    for (int i = 0; i < LENGTH; i++)
        last[padded - 1 - (size_t)i] = (uint8_t)(bits >> 8 * i);
    add_block(last, h);
    if (padded > BLOCK)
        add_block(last + BLOCK, h);
    for (int i = 0; i < WORDS; i++)
        for (int j = 0; j < 4; j++)
            digest[4 * i + j] = (uint8_t)(h[i] >> (24 - 8 * j));
}
