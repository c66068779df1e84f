#include "support/fail_new.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace
{

thread_local long calls;
thread_local long failing; /* 0: none */

void *allocate(std::size_t size) noexcept
{
    calls++;
    if (calls == failing)
        return nullptr;
    return std::malloc(size > 0 ? size : 1);
}

void *allocate_or_throw(std::size_t size)
{
    void *memory = allocate(size);
    if (!memory)
        throw std::bad_alloc();
    return memory;
}

} // namespace

void fail_new_after(long number)
{
    calls = 0;
    failing = number;
}

long fail_new_calls(void)
{
    return calls;
}

void *operator new(std::size_t size)
{
    return allocate_or_throw(size);
}

void *operator new[](std::size_t size)
{
    return allocate_or_throw(size);
}

void *operator new(std::size_t size, const std::nothrow_t & /*tag*/) noexcept
{
    return allocate(size);
}

void *operator new[](std::size_t size, const std::nothrow_t & /*tag*/) noexcept
{
    return allocate(size);
}

void operator delete(void *memory) noexcept
{
    std::free(memory);
}

void operator delete[](void *memory) noexcept
{
    std::free(memory);
}

void operator delete(void *memory, std::size_t /*size*/) noexcept
{
    std::free(memory);
}

void operator delete[](void *memory, std::size_t /*size*/) noexcept
{
    std::free(memory);
}

void operator delete(void *memory, const std::nothrow_t & /*tag*/) noexcept
{
    std::free(memory);
}

void operator delete[](void *memory, const std::nothrow_t & /*tag*/) noexcept
{
    std::free(memory);
}
