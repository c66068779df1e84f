/*
 * What the program does when memory runs out. C++, because the engine throws std::bad_alloc in
 * threads of its own, where no caller can catch it. Acknowledged writes are in the store's log.
 */
#include "cli/process.h"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>
#include <unistd.h>

#include <bson/bson.h>

extern "C" {
#include "cli/command.h"
}

namespace
{

/* Must not allocate. */
[[noreturn]] void end_without_memory()
{
    static const char text[] =
        "spillway: out of memory: raise the limit (ulimit -v), or free memory; "
        "acknowledged writes are in the store\n";
    ssize_t wrote = write(STDERR_FILENO, text, sizeof text - 1);
    (void)wrote;
    _exit(SPILL_EXIT_FAILED);
}

std::atomic<bool> memory_failed(false);

/* Called by operator new, which passes its exception on. */
void note_failure()
{
    memory_failed.store(true);
    throw std::bad_alloc();
}

/* Any other exception is a bug: abort, as the default does. */
void end_process()
{
    if (memory_failed.load())
        end_without_memory();
    std::exception_ptr current = std::current_exception();
    if (current) {
        try {
            std::rethrow_exception(current);
        } catch (const std::bad_alloc &) {
            end_without_memory();
        } catch (const std::system_error &) { /* a thread could not be started */
            end_without_memory();
        } catch (...) {
        }
    }
    std::abort();
}

void *or_end(void *memory)
{
    if (!memory)
        end_without_memory();
    return memory;
}

void *allocate(size_t size)
{
    return or_end(std::malloc(size > 0 ? size : 1));
}

void *allocate_zeroed(size_t count, size_t size)
{
    return or_end(std::calloc(count > 0 ? count : 1, size > 0 ? size : 1));
}

void *reallocate(void *memory, size_t size)
{
    return or_end(std::realloc(memory, size > 0 ? size : 1));
}

void *allocate_aligned(size_t alignment, size_t size)
{
    return or_end(std::aligned_alloc(alignment, size));
}

} // namespace

void spill_cli_report_lost_memory(void)
{
    static bson_mem_vtable_t table;
    table.malloc = allocate;
    table.calloc = allocate_zeroed;
    table.realloc = reallocate;
    table.free = std::free;
    table.aligned_alloc = allocate_aligned;
    std::set_terminate(end_process);
    std::set_new_handler(note_failure);
    bson_mem_set_vtable(&table);
}
