/* Documents of tests, written as Extended JSON. */
#ifndef SPILL_TESTS_DOCUMENT_H
#define SPILL_TESTS_DOCUMENT_H

#include <bson/bson.h>

/* The document of that text; free it with bson_destroy. Other text fails the test. */
bson_t *document_from_json(const char *json);

#endif
