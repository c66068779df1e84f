/*
 * The functions of libmongoc that the store calls. libmongoc and the libraries it needs take longer
 * to load than the whole program, and a process without a server store does not need them. So
 * nothing links with libmongoc: the first server store of the process loads it.
 *
 * The macros below let the store's files call the functions by their names. A function that has no
 * macro does not link; one that is not in the list does not compile.
 */
#ifndef SPILL_STORE_MONGO_DRIVER_H
#define SPILL_STORE_MONGO_DRIVER_H

#include <spillway/error.h>

#include <mongoc/mongoc.h>

/*
 * Load libmongoc once for the process. SPILL_IO: it is not installed, or is too old.
 * Any thread may call it. Cost: 7 ms for the first call.
 */
spill_code_t spill_driver_load(spill_error_t *error);

/*
 * Keep the driver's warnings of this thread in `warnings` until the next call, which may be with
 * NULL. A program that has loaded the driver itself gets them in its own log instead.
 */
void spill_driver_keep_warnings(bson_string_t *warnings);

#define SPILL_DRIVER_FUNCTIONS(X)                                                                  \
    X(apm_callbacks_destroy)                                                                       \
    X(apm_callbacks_new)                                                                           \
    X(apm_command_started_get_command)                                                             \
    X(apm_command_started_get_context)                                                             \
    X(apm_command_succeeded_get_context)                                                           \
    X(apm_command_succeeded_get_reply)                                                             \
    X(apm_set_command_started_cb)                                                                  \
    X(apm_set_command_succeeded_cb)                                                                \
    X(bulk_operation_destroy)                                                                      \
    X(bulk_operation_execute)                                                                      \
    X(bulk_operation_insert_with_opts)                                                             \
    X(bulk_operation_remove_one_with_opts)                                                         \
    X(bulk_operation_replace_one_with_opts)                                                        \
    X(bulk_operation_update_one_with_opts)                                                         \
    X(client_command_simple)                                                                       \
    X(client_command_simple_with_server_id)                                                        \
    X(client_destroy)                                                                              \
    X(client_get_collection)                                                                       \
    X(client_get_database)                                                                         \
    X(client_get_uri)                                                                              \
    X(client_new_from_uri)                                                                         \
    X(client_pool_destroy)                                                                         \
    X(client_pool_new_with_error)                                                                  \
    X(client_pool_pop)                                                                             \
    X(client_pool_push)                                                                            \
    X(client_pool_set_apm_callbacks)                                                               \
    X(client_pool_set_error_api)                                                                   \
    X(client_read_command_with_opts)                                                               \
    X(client_select_server)                                                                        \
    X(client_write_command_with_opts)                                                              \
    X(collection_aggregate)                                                                        \
    X(collection_create_bulk_operation_with_opts)                                                  \
    X(collection_delete_many)                                                                      \
    X(collection_delete_one)                                                                       \
    X(collection_destroy)                                                                          \
    X(collection_estimated_document_count)                                                         \
    X(collection_find_and_modify_with_opts)                                                        \
    X(collection_find_indexes_with_opts)                                                           \
    X(collection_find_with_opts)                                                                   \
    X(collection_get_name)                                                                         \
    X(collection_insert_many)                                                                      \
    X(collection_insert_one)                                                                       \
    X(collection_replace_one)                                                                      \
    X(collection_set_read_concern)                                                                 \
    X(collection_set_read_prefs)                                                                   \
    X(collection_set_write_concern)                                                                \
    X(collection_update_one)                                                                       \
    X(cursor_destroy)                                                                              \
    X(cursor_error)                                                                                \
    X(cursor_error_document)                                                                       \
    X(cursor_more)                                                                                 \
    X(cursor_next)                                                                                 \
    X(database_destroy)                                                                            \
    X(database_find_collections_with_opts)                                                         \
    X(database_set_read_prefs)                                                                     \
    X(error_has_label)                                                                             \
    X(find_and_modify_opts_destroy)                                                                \
    X(find_and_modify_opts_new)                                                                    \
    X(find_and_modify_opts_set_fields)                                                             \
    X(find_and_modify_opts_set_flags)                                                              \
    X(find_and_modify_opts_set_max_time_ms)                                                        \
    X(find_and_modify_opts_set_update)                                                             \
    X(init)                                                                                        \
    X(log_set_handler)                                                                             \
    X(read_concern_append)                                                                         \
    X(read_concern_destroy)                                                                        \
    X(read_concern_is_default)                                                                     \
    X(read_concern_new)                                                                            \
    X(read_concern_set_level)                                                                      \
    X(read_prefs_destroy)                                                                          \
    X(read_prefs_get_mode)                                                                         \
    X(read_prefs_new)                                                                              \
    X(server_description_destroy)                                                                  \
    X(server_description_host)                                                                     \
    X(server_description_id)                                                                       \
    X(uri_destroy)                                                                                 \
    X(uri_get_appname)                                                                             \
    X(uri_get_database)                                                                            \
    X(uri_get_hosts)                                                                               \
    X(uri_get_option_as_bool)                                                                      \
    X(uri_get_option_as_utf8)                                                                      \
    X(uri_get_read_concern)                                                                        \
    X(uri_get_read_prefs_t)                                                                        \
    X(uri_get_srv_hostname)                                                                        \
    X(uri_get_tls)                                                                                 \
    X(uri_get_write_concern)                                                                       \
    X(uri_has_option)                                                                              \
    X(uri_new_with_error)                                                                          \
    X(uri_set_appname)                                                                             \
    X(uri_set_option_as_int32)                                                                     \
    X(uri_set_read_concern)                                                                        \
    X(uri_set_write_concern)                                                                       \
    X(write_concern_append)                                                                        \
    X(write_concern_copy)                                                                          \
    X(write_concern_destroy)                                                                       \
    X(write_concern_get_w)                                                                         \
    X(write_concern_is_acknowledged)                                                               \
    X(write_concern_set_w)

typedef struct spill_driver {
#define SPILL_DRIVER_MEMBER(name) __typeof__(mongoc_##name) *name;
    SPILL_DRIVER_FUNCTIONS(SPILL_DRIVER_MEMBER)
#undef SPILL_DRIVER_MEMBER
} spill_driver_t;

/* All NULL before spill_driver_load. */
extern spill_driver_t spill_driver;

#define mongoc_apm_callbacks_destroy spill_driver.apm_callbacks_destroy
#define mongoc_apm_callbacks_new spill_driver.apm_callbacks_new
#define mongoc_apm_command_started_get_command spill_driver.apm_command_started_get_command
#define mongoc_apm_command_started_get_context spill_driver.apm_command_started_get_context
#define mongoc_apm_command_succeeded_get_context spill_driver.apm_command_succeeded_get_context
#define mongoc_apm_command_succeeded_get_reply spill_driver.apm_command_succeeded_get_reply
#define mongoc_apm_set_command_started_cb spill_driver.apm_set_command_started_cb
#define mongoc_apm_set_command_succeeded_cb spill_driver.apm_set_command_succeeded_cb
#define mongoc_bulk_operation_destroy spill_driver.bulk_operation_destroy
#define mongoc_bulk_operation_execute spill_driver.bulk_operation_execute
#define mongoc_bulk_operation_insert_with_opts spill_driver.bulk_operation_insert_with_opts
#define mongoc_bulk_operation_remove_one_with_opts spill_driver.bulk_operation_remove_one_with_opts
#define mongoc_bulk_operation_replace_one_with_opts                                                \
    spill_driver.bulk_operation_replace_one_with_opts
#define mongoc_bulk_operation_update_one_with_opts spill_driver.bulk_operation_update_one_with_opts
#define mongoc_client_command_simple spill_driver.client_command_simple
#define mongoc_client_command_simple_with_server_id                                                \
    spill_driver.client_command_simple_with_server_id
#define mongoc_client_destroy spill_driver.client_destroy
#define mongoc_client_get_collection spill_driver.client_get_collection
#define mongoc_client_get_database spill_driver.client_get_database
#define mongoc_client_get_uri spill_driver.client_get_uri
#define mongoc_client_new_from_uri spill_driver.client_new_from_uri
#define mongoc_client_pool_destroy spill_driver.client_pool_destroy
#define mongoc_client_pool_new_with_error spill_driver.client_pool_new_with_error
#define mongoc_client_pool_pop spill_driver.client_pool_pop
#define mongoc_client_pool_push spill_driver.client_pool_push
#define mongoc_client_pool_set_apm_callbacks spill_driver.client_pool_set_apm_callbacks
#define mongoc_client_pool_set_error_api spill_driver.client_pool_set_error_api
#define mongoc_client_read_command_with_opts spill_driver.client_read_command_with_opts
#define mongoc_client_select_server spill_driver.client_select_server
#define mongoc_client_write_command_with_opts spill_driver.client_write_command_with_opts
#define mongoc_collection_aggregate spill_driver.collection_aggregate
#define mongoc_collection_create_bulk_operation_with_opts                                          \
    spill_driver.collection_create_bulk_operation_with_opts
#define mongoc_collection_delete_many spill_driver.collection_delete_many
#define mongoc_collection_delete_one spill_driver.collection_delete_one
#define mongoc_collection_destroy spill_driver.collection_destroy
#define mongoc_collection_estimated_document_count spill_driver.collection_estimated_document_count
#define mongoc_collection_find_and_modify_with_opts                                                \
    spill_driver.collection_find_and_modify_with_opts
#define mongoc_collection_find_indexes_with_opts spill_driver.collection_find_indexes_with_opts
#define mongoc_collection_find_with_opts spill_driver.collection_find_with_opts
#define mongoc_collection_get_name spill_driver.collection_get_name
#define mongoc_collection_insert_many spill_driver.collection_insert_many
#define mongoc_collection_insert_one spill_driver.collection_insert_one
#define mongoc_collection_replace_one spill_driver.collection_replace_one
#define mongoc_collection_set_read_concern spill_driver.collection_set_read_concern
#define mongoc_collection_set_read_prefs spill_driver.collection_set_read_prefs
#define mongoc_collection_set_write_concern spill_driver.collection_set_write_concern
#define mongoc_collection_update_one spill_driver.collection_update_one
#define mongoc_cursor_destroy spill_driver.cursor_destroy
#define mongoc_cursor_error spill_driver.cursor_error
#define mongoc_cursor_error_document spill_driver.cursor_error_document
#define mongoc_cursor_more spill_driver.cursor_more
#define mongoc_cursor_next spill_driver.cursor_next
#define mongoc_database_destroy spill_driver.database_destroy
#define mongoc_database_find_collections_with_opts spill_driver.database_find_collections_with_opts
#define mongoc_database_set_read_prefs spill_driver.database_set_read_prefs
#define mongoc_error_has_label spill_driver.error_has_label
#define mongoc_find_and_modify_opts_destroy spill_driver.find_and_modify_opts_destroy
#define mongoc_find_and_modify_opts_new spill_driver.find_and_modify_opts_new
#define mongoc_find_and_modify_opts_set_fields spill_driver.find_and_modify_opts_set_fields
#define mongoc_find_and_modify_opts_set_flags spill_driver.find_and_modify_opts_set_flags
#define mongoc_find_and_modify_opts_set_max_time_ms                                                \
    spill_driver.find_and_modify_opts_set_max_time_ms
#define mongoc_find_and_modify_opts_set_update spill_driver.find_and_modify_opts_set_update
#define mongoc_init spill_driver.init
#define mongoc_log_set_handler spill_driver.log_set_handler
#define mongoc_read_concern_append spill_driver.read_concern_append
#define mongoc_read_concern_destroy spill_driver.read_concern_destroy
#define mongoc_read_concern_is_default spill_driver.read_concern_is_default
#define mongoc_read_concern_new spill_driver.read_concern_new
#define mongoc_read_concern_set_level spill_driver.read_concern_set_level
#define mongoc_read_prefs_destroy spill_driver.read_prefs_destroy
#define mongoc_read_prefs_get_mode spill_driver.read_prefs_get_mode
#define mongoc_read_prefs_new spill_driver.read_prefs_new
#define mongoc_server_description_destroy spill_driver.server_description_destroy
#define mongoc_server_description_host spill_driver.server_description_host
#define mongoc_server_description_id spill_driver.server_description_id
#define mongoc_uri_destroy spill_driver.uri_destroy
#define mongoc_uri_get_appname spill_driver.uri_get_appname
#define mongoc_uri_get_database spill_driver.uri_get_database
#define mongoc_uri_get_hosts spill_driver.uri_get_hosts
#define mongoc_uri_get_option_as_bool spill_driver.uri_get_option_as_bool
#define mongoc_uri_get_option_as_utf8 spill_driver.uri_get_option_as_utf8
#define mongoc_uri_get_read_concern spill_driver.uri_get_read_concern
#define mongoc_uri_get_read_prefs_t spill_driver.uri_get_read_prefs_t
#define mongoc_uri_get_srv_hostname spill_driver.uri_get_srv_hostname
#define mongoc_uri_get_tls spill_driver.uri_get_tls
#define mongoc_uri_get_write_concern spill_driver.uri_get_write_concern
#define mongoc_uri_has_option spill_driver.uri_has_option
#define mongoc_uri_new_with_error spill_driver.uri_new_with_error
#define mongoc_uri_set_appname spill_driver.uri_set_appname
#define mongoc_uri_set_option_as_int32 spill_driver.uri_set_option_as_int32
#define mongoc_uri_set_read_concern spill_driver.uri_set_read_concern
#define mongoc_uri_set_write_concern spill_driver.uri_set_write_concern
#define mongoc_write_concern_append spill_driver.write_concern_append
#define mongoc_write_concern_copy spill_driver.write_concern_copy
#define mongoc_write_concern_destroy spill_driver.write_concern_destroy
#define mongoc_write_concern_get_w spill_driver.write_concern_get_w
#define mongoc_write_concern_is_acknowledged spill_driver.write_concern_is_acknowledged
#define mongoc_write_concern_set_w spill_driver.write_concern_set_w

#endif
