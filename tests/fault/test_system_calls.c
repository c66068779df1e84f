/*
 * For every operation on the folder of a store (open, append, close, read, back up, repair a
 * damaged log), each place of the program that calls the operating system gets an error once.
 *
 * After each failure the test checks that:
 *   - the operation reported an error that names the folder, or succeeded in another way;
 *   - the same operation, called again, succeeds;
 *   - the store then holds every element, and the check of the store finds nothing.
 *
 * Some failures only mean that a file system lacks a feature, such as hard links, or that a signal
 * came. After these the operation must succeed at once. A backup and a repair then use other calls,
 * and each of these calls fails too.
 *
 * This program defines its own open, fsync, ..., and the linker binds the store to them. Calls by
 * the engine's library do not fail.
 */
#include "support/embedded.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum { ELEMENTS = 12, MORE = 4, PATH_BYTES = 256, ENDLESS = 1000, PLACES_MAX = 256 };

/* ---- calls that fail ------------------------------------------------------------------------- */

typedef enum way {
    FAILS,   /* with EIO */
    LACKING, /* a missing feature or a signal: counts only calls that can return such an error */
    WITHOUT, /* with EIO, on a file system that lacks every optional feature */
    WAYS
} way_t;

/* A place in the program that calls the operating system. */
typedef struct place {
    const char *from;
    long calls; /* since the test armed the plan */
    long failed;
} place_t;

static struct {
    bool armed;
    way_t way;
    bool past; /* a call failed since the test armed the plan */
    const char *struck;
    place_t places[PLACES_MAX];
    size_t place_count;
} plan;

/*
 * At each place only the first two calls fail, each in its own run of the operation. Later calls
 * would add runs that test the same.
 */
enum { FAILED_MAX = 2 };

/* Count a call from this place, and return whether this call must fail. */
static bool is_due(const char *from)
{
    size_t i = 0;
    while (i < plan.place_count && plan.places[i].from != from)
        i++;
    if (i == PLACES_MAX)
        abort();
    if (i == plan.place_count)
        plan.places[plan.place_count++] = (place_t){.from = from};
    long call = plan.places[i].calls++;
    if (plan.past || call < plan.places[i].failed || plan.places[i].failed == FAILED_MAX)
        return false;
    plan.places[i].failed++;
    return true;
}

extern const char __executable_start, etext;

/* Whether this call fails. `lacking` is its error if the way is LACKING; 0: it has none. */
static bool strikes(const char *name, const void *caller, int lacking)
{
    const char *from = caller;
    if (!plan.armed || from < &__executable_start || from >= &etext)
        return false;
    if (plan.way == LACKING && lacking == 0)
        return false;
    if (plan.way == WITHOUT && lacking != 0 && lacking != EINTR) {
        errno = lacking;
        return true;
    }
    if (!is_due(from))
        return false;
    plan.past = true;
    plan.struck = name;
    errno = plan.way == LACKING ? lacking : EIO;
    return true;
}

#define STRIKES(name, lacking) strikes(name, __builtin_return_address(0), lacking)

/* The C library's function of this name. */
static void *libc_function(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (!function)
        abort();
    return function;
}

/* Defines the C library's function NAME, which returns BAD if it fails. */
#define FAILING(type, name, parameters, arguments, bad, lacking)                                   \
    type failing_##name parameters __asm__(#name);                                                 \
    type failing_##name parameters                                                                 \
    {                                                                                              \
        static type(*inner) parameters;                                                            \
        if (!inner)                                                                                \
            *(void **)&inner = libc_function(#name);                                               \
        return STRIKES(#name, lacking) ? (bad) : inner arguments;                                  \
    }

FAILING(DIR *, opendir, (const char *path), (path), NULL, 0)
FAILING(DIR *, fdopendir, (int fd), (fd), NULL, 0)
FAILING(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, 0)
FAILING(FILE *, fdopen, (int fd, const char *mode), (fd, mode), NULL, 0)
FAILING(int, fstat, (int fd, struct stat *about), (fd, about), -1, 0)
FAILING(int, stat, (const char *path, struct stat *about), (path, about), -1, 0)
FAILING(int, lstat, (const char *path, struct stat *about), (path, about), -1, 0)
FAILING(ssize_t, read, (int fd, void *data, size_t size), (fd, data, size), -1, EINTR)
FAILING(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size), -1, EINTR)
FAILING(ssize_t, pread, (int fd, void *data, size_t size, off_t at), (fd, data, size, at), -1, 0)
FAILING(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at),
        -1, 0)
FAILING(int, ftruncate, (int fd, off_t size), (fd, size), -1, 0)
FAILING(int, link, (const char *from, const char *to), (from, to), -1, EPERM)
FAILING(int, linkat, (int folder, const char *from, int other, const char *to, int flags),
        (folder, from, other, to, flags), -1, EXDEV)
FAILING(int, rename, (const char *from, const char *to), (from, to), -1, 0)
FAILING(int, renameat2, (int folder, const char *from, int other, const char *to, unsigned flags),
        (folder, from, other, to, flags), -1, EINVAL)
FAILING(int, unlink, (const char *path), (path), -1, 0)
FAILING(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, 0)
FAILING(int, chmod, (const char *path, mode_t mode), (path, mode), -1, 0)
FAILING(int, fchmod, (int fd, mode_t mode), (fd, mode), -1, 0)
FAILING(int, flock, (int fd, int operation), (fd, operation), -1, 0)

static bool is_folder(int fd)
{
    struct stat about;
    return syscall(SYS_fstat, fd, &about) == 0 && S_ISDIR(about.st_mode);
}

/* No power fails in this test: a sync has nothing to do. */
int failing_fsync(int fd) __asm__("fsync");
int failing_fsync(int fd)
{
    return STRIKES("fsync", is_folder(fd) ? EINVAL : 0) ? -1 : 0;
}

/* The engine syncs its log by this call. */
static bool engine_sync_fails;

int failing_fdatasync(int fd) __asm__("fdatasync");
int failing_fdatasync(int fd)
{
    (void)fd;
    errno = EIO;
    return engine_sync_fails ? -1 : 0;
}

/* A failing close closes the file, as in the kernel. */
int failing_close(int fd) __asm__("close");
int failing_close(int fd)
{
    bool strikes_now = STRIKES("close", 0);
    int problem = errno;
    int result = (int)syscall(SYS_close, fd);
    errno = strikes_now ? problem : errno;
    return strikes_now ? -1 : result;
}

int failing_open(const char *path, int flags, ...) __asm__("open");
int failing_open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    unsigned mode = (flags & O_CREAT) != 0 ? va_arg(more, unsigned) : 0;
    va_end(more);
    return STRIKES("open", 0) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int failing_openat(int folder, const char *path, int flags, ...) __asm__("openat");
int failing_openat(int folder, const char *path, int flags, ...)
{
    return STRIKES("openat", 0) ? -1 : (int)syscall(SYS_openat, folder, path, flags, 0);
}

/* ---- operations ------------------------------------------------------------------------------ */

typedef struct scene {
    char folder[PATH_BYTES];   /* the store */
    char backup[PATH_BYTES];   /* a free path for the backup */
    char pristine[PATH_BYTES]; /* the store before the operation; "": none */
    int64_t elements;          /* the number that the store holds after the operation */
} scene_t;

static spill_store_options_t options_for(bool read_only)
{
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    options.read_only = read_only;
    return options;
}

/* Append the elements that owner "ada" still lacks. */
static spill_code_t append_rest(spill_store_t *store, int64_t count, spill_error_t *error)
{
    spill_array_t *array = embedded_array(store, "feed", 3, 4);
    int64_t held = 0;
    while (held < count && embedded_holds(array, "ada", 0, held, error) != SPILL_OK)
        held++;
    spill_code_t code = embedded_append(array, "ada", held, count - held, error);
    spill_array_close(array);
    return code;
}

static spill_code_t fill_store(const scene_t *scene, spill_error_t *error)
{
    spill_store_options_t options = options_for(false);
    spill_store_t *store;
    spill_code_t code = spill_store_open(scene->folder, &options, &store, error);
    if (code != SPILL_OK)
        return code;
    code = append_rest(store, scene->elements, error);
    spill_error_t closing;
    spill_code_t closed = spill_store_close(store, &closing);
    if (code == SPILL_OK && closed != SPILL_OK && error)
        *error = closing;
    return code == SPILL_OK ? closed : code;
}

static spill_code_t read_store(const scene_t *scene, spill_error_t *error)
{
    spill_store_options_t options = options_for(true);
    spill_store_t *store;
    spill_code_t code = spill_store_open(scene->folder, &options, &store, error);
    if (code != SPILL_OK)
        return code;
    spill_array_t *array;
    code = spill_array_open(store, "feed", &array, error);
    if (code == SPILL_OK) {
        code = embedded_holds(array, "ada", 0, scene->elements, error);
        spill_array_close(array);
    }
    spill_store_close(store, NULL);
    return code;
}

static spill_code_t back_up(const scene_t *scene, bool read_only, spill_error_t *error)
{
    spill_store_options_t options = options_for(read_only);
    spill_store_t *store;
    spill_code_t code = spill_store_open(scene->folder, &options, &store, error);
    if (code != SPILL_OK)
        return code;
    code = spill_store_backup(store, scene->backup, error);
    spill_store_close(store, NULL);
    return code;
}

static spill_code_t back_up_as_writer(const scene_t *scene, spill_error_t *error)
{
    return back_up(scene, false, error);
}

static spill_code_t back_up_as_reader(const scene_t *scene, spill_error_t *error)
{
    return back_up(scene, true, error);
}

static spill_code_t repair_log(const scene_t *scene, spill_error_t *error)
{
    spill_log_cut_t cut;
    return spill_store_cut_log(scene->folder, false, NULL, NULL, &cut, error);
}

/* ---- stores ---------------------------------------------------------------------------------- */

/* If a writer has the store open, its engine may delete a file during the copy: then try again. */
static void copy_folder(const char *from, const char *to)
{
    enum { TRIES = 20 };
    char command[3 * PATH_BYTES];
    int result = -1;
    snprintf(command, sizeof command, "cp -a '%s' '%s' 2>/dev/null", from, to);
    for (int i = 0; i < TRIES && result != 0; i++) {
        embedded_remove_folder(to);
        result = system(command);
    }
    assert_int_equal(result, 0);
}

static void make_store(const char *folder)
{
    scene_t scene = {.elements = ELEMENTS};
    spill_error_t error;
    snprintf(scene.folder, sizeof scene.folder, "%s", folder);
    if (fill_store(&scene, &error) != SPILL_OK)
        fail_msg("%s", error.message);
}

/* A store that was not closed: a copy made while a writer has it. Its log has the last MORE
 * elements. */
static void make_killed(const char *folder)
{
    spill_store_options_t options = options_for(false);
    spill_error_t error;
    char open_folder[PATH_BYTES];
    snprintf(open_folder, sizeof open_folder, "%.200s-open", folder);
    make_store(open_folder);
    spill_store_t *store = embedded_in_folder(open_folder, &options);
    assert_int_equal(append_rest(store, ELEMENTS + MORE, &error), SPILL_OK);
    copy_folder(open_folder, folder);
    embedded_close(store);
}

/* Damage the last element of the log, so that the repair loses only this element. */
static void make_damaged(const char *folder)
{
    char path[2 * PATH_BYTES] = "";
    static const char bad[] = "\xff";
    make_killed(folder);
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    off_t largest = 0; /* an older log may still exist */
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        struct stat about;
        if (entry->d_name[0] != '0' || !strstr(entry->d_name, ".log") ||
            fstatat(dirfd(entries), entry->d_name, &about, 0) != 0 || about.st_size <= largest)
            continue;
        largest = about.st_size;
        snprintf(path, sizeof path, "%s/%.100s", folder, entry->d_name);
    }
    closedir(entries);
    int log = open(path, O_RDWR | O_CLOEXEC);
    assert_true(log >= 0);
    assert_int_equal(pwrite(log, bad, 1, largest - 4), 1);
    close(log);
}

static void assert_whole(const char *folder, int64_t elements)
{
    spill_store_options_t options = options_for(false);
    spill_error_t error;
    spill_store_t *store = embedded_in_folder(folder, &options);
    spill_array_t *array = embedded_array(store, "feed", 3, 4);
    if (embedded_holds(array, "ada", 0, elements, &error) != SPILL_OK)
        fail_msg("%s: after %s failed the store does not hold %d elements", folder, plan.struck,
                 (int)elements);
    assert_int_equal(embedded_findings(store, array, "ada"), 0);
    spill_array_close(array);
    embedded_close(store);
}

/* ---- failures -------------------------------------------------------------------------------- */

typedef spill_code_t (*operation_fn)(const scene_t *scene, spill_error_t *error);

static void set_scene(scene_t *scene, void (*make)(const char *folder), int64_t elements)
{
    const char *folder = embedded_new_folder();
    *scene = (scene_t){.elements = elements};
    snprintf(scene->folder, sizeof scene->folder, "%s", folder);
    snprintf(scene->backup, sizeof scene->backup, "%s-backup", folder);
    if (!make)
        return;
    snprintf(scene->pristine, sizeof scene->pristine, "%s-pristine", folder);
    make(scene->pristine);
}

static void check_failure(const scene_t *scene, spill_code_t code, const spill_error_t *error)
{
    if (code == SPILL_OK)
        return;
    if (plan.way == LACKING)
        fail_msg("%s lacking: %s", plan.struck, error->message);
    const char *end = strrchr(scene->folder, '/'); /* if the parent's sync failed */
    char parent[PATH_BYTES];
    snprintf(parent, sizeof parent, "%.*s", (int)(end - scene->folder), scene->folder);
    if (error->code != code || !strstr(error->message, parent))
        fail_msg("%s failed: the message does not name the folder: %s", plan.struck,
                 error->message);
}

/* Run the operation with the next failing call. Returns false after each place had its failures. */
static bool fail_next(const scene_t *scene, operation_fn operation)
{
    spill_error_t error = {0};
    if (scene->pristine[0] != '\0')
        copy_folder(scene->pristine, scene->folder);
    else
        embedded_remove_folder(scene->folder);
    embedded_remove_folder(scene->backup);
    for (size_t i = 0; i < plan.place_count; i++)
        plan.places[i].calls = 0;
    plan.past = false;
    plan.struck = NULL;
    plan.armed = true;
    spill_code_t code = operation(scene, &error);
    plan.armed = false;
    if (!plan.struck) {
        if (code != SPILL_OK)
            fail_msg("no call failed: %s", error.message);
        return false;
    }
    check_failure(scene, code, &error);
    struct stat about;
    bool copied = stat(scene->backup, &about) == 0;
    if (code != SPILL_OK && !copied && operation(scene, &error) != SPILL_OK)
        fail_msg("%s failed, and then the second try: %s", plan.struck, error.message);
    assert_whole(scene->folder, scene->elements);
    if (stat(scene->backup, &about) == 0)
        assert_whole(scene->backup, scene->elements);
    return true;
}

static void fail_each_call(const scene_t *scene, operation_fn operation, way_t way, long least)
{
    long failed = 0;
    plan.place_count = 0;
    plan.way = way;
    while (failed < ENDLESS && fail_next(scene, operation))
        failed++;
    print_message("%ld calls failed in way %d\n", failed, (int)way);
    assert_in_range(failed, least, ENDLESS - 1);
}

static void a_new_store(void **state)
{
    (void)state;
    scene_t scene;
    set_scene(&scene, NULL, ELEMENTS);
    fail_each_call(&scene, fill_store, FAILS, 10);
    fail_each_call(&scene, fill_store, LACKING, 1);
}

static void an_existing_store(void **state)
{
    (void)state;
    scene_t scene;
    set_scene(&scene, make_store, ELEMENTS + MORE);
    fail_each_call(&scene, fill_store, FAILS, 10);
    fail_each_call(&scene, fill_store, LACKING, 1);
}

static void a_store_of_a_killed_writer(void **state)
{
    (void)state;
    scene_t scene;
    set_scene(&scene, make_killed, ELEMENTS + MORE);
    fail_each_call(&scene, fill_store, FAILS, 10);
    fail_each_call(&scene, fill_store, LACKING, 1);
}

static void a_reader(void **state)
{
    (void)state;
    scene_t scene;
    set_scene(&scene, make_killed, ELEMENTS + MORE);
    fail_each_call(&scene, read_store, FAILS, 20);
    fail_each_call(&scene, read_store, LACKING, 0);
}

static void a_backup(void **state)
{
    (void)state;
    scene_t scene;
    set_scene(&scene, make_store, ELEMENTS);
    fail_each_call(&scene, back_up_as_writer, FAILS, 20);
    fail_each_call(&scene, back_up_as_writer, LACKING, 2);
    fail_each_call(&scene, back_up_as_writer, WITHOUT, 20);
}

static void a_backup_by_a_reader(void **state)
{
    (void)state;
    scene_t scene;
    set_scene(&scene, make_store, ELEMENTS);
    fail_each_call(&scene, back_up_as_reader, FAILS, 20);
    fail_each_call(&scene, back_up_as_reader, LACKING, 2);
    fail_each_call(&scene, back_up_as_reader, WITHOUT, 20);
}

static void a_repair_of_a_log(void **state)
{
    (void)state;
    scene_t scene;
    set_scene(&scene, make_damaged, ELEMENTS + MORE - 1);
    fail_each_call(&scene, repair_log, FAILS, 20);
    fail_each_call(&scene, repair_log, LACKING, 2);
    fail_each_call(&scene, repair_log, WITHOUT, 20);
}

/* The disk may or may not have the element. The store must acknowledge nothing afterwards. */
static void a_sync_of_the_log_that_fails(void **state)
{
    (void)state;
    const char *folder = embedded_new_folder();
    for (int with_error = 0; with_error < 2; with_error++) {
        spill_error_t error = {0};
        embedded_remove_folder(folder);
        spill_store_t *store = embedded_in_folder(folder, NULL);
        spill_array_t *array = embedded_array(store, "feed", 3, 4);
        assert_int_equal(embedded_append(array, "ada", 0, 2, &error), SPILL_OK);
        engine_sync_fails = true;
        assert_int_equal(embedded_append(array, "ada", 2, 1, with_error ? &error : NULL),
                         SPILL_UNKNOWN);
        if (with_error) {
            assert_int_equal(error.code, SPILL_UNKNOWN);
            assert_non_null(strstr(error.message, folder));
        }
        engine_sync_fails = false;
        assert_int_not_equal(embedded_append(array, "ada", 3, 1, &error), SPILL_OK);
        spill_array_close(array);
        spill_store_close(store, NULL);
        store = embedded_in_folder(folder, NULL);
        array = embedded_array(store, "feed", 3, 4);
        assert_true(embedded_holds(array, "ada", 0, 2, &error) == SPILL_OK ||
                    embedded_holds(array, "ada", 0, 3, &error) == SPILL_OK);
        assert_int_equal(embedded_findings(store, array, "ada"), 0);
        spill_array_close(array);
        embedded_close(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_store),
        cmocka_unit_test(an_existing_store),
        cmocka_unit_test(a_store_of_a_killed_writer),
        cmocka_unit_test(a_reader),
        cmocka_unit_test(a_backup),
        cmocka_unit_test(a_backup_by_a_reader),
        cmocka_unit_test(a_repair_of_a_log),
        cmocka_unit_test(a_sync_of_the_log_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
