/*
 * Passes the hints of insert_hints.h to the engine. C++, because the engine's C interface has no
 * way to do so; the object reaches the engine through its registry of named objects.
 */
#include <array>
#include <memory>
#include <mutex>
#include <string>

#include <bson/bson.h>
#include <rocksdb/c.h>
#include <rocksdb/slice.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/utilities/object_registry.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a C function may have the name of a struct */
extern "C" {
#include "store/embedded/insert_hints.h"
#include "store/embedded/kv_rocksdb.h"
}
#pragma GCC diagnostic pop

using rocksdb::Slice;

namespace
{

const char *const kName = "spillway-insert-hints";

/* A name of one byte for each hint. The engine keeps pointers to them. */
using names_t = std::array<char, SPILL_INSERT_HINTS>;

constexpr names_t make_names()
{
    names_t names{};
    for (size_t i = 0; i < names.size(); i++)
        names[i] = static_cast<char>(i);
    return names;
}

constexpr names_t names = make_names();

/* Before it inserts a key, the engine asks InDomain, and then Transform for the name of its hint.
 */
class InsertHints : public rocksdb::SliceTransform
{
  public:
    explicit InsertHints(spill_insert_hints_t *hints) : hints_(hints)
    {
    }
    const char *Name() const override
    {
        return kName;
    }
    bool InDomain(const Slice &key) const override
    {
        if (!hints_)
            return false;
        const auto *bytes = reinterpret_cast<const uint8_t *>(key.data());
        hint_ = spill_insert_hints_find(hints_, bytes, key.size());
        return hint_ != SPILL_INSERT_HINT_NONE;
    }
    Slice Transform(const Slice & /*key*/) const override
    {
        return Slice(&names[hint_ % names.size()], 1);
    }

  private:
    spill_insert_hints_t *hints_; /* NULL: for an object that no database uses */
    mutable size_t hint_ = 0;     /* of the key in the last call */
};

/* What the registry gives to the thread that opens a database. */
thread_local spill_insert_hints_t *next_hints = nullptr;

void register_hints()
{
    static std::once_flag once;
    std::call_once(once, [] {
        using rocksdb::SliceTransform;
        rocksdb::ObjectLibrary::Default()->AddFactory<const SliceTransform>(
            kName, [](const std::string & /*uri*/, std::unique_ptr<const SliceTransform> *guard,
                      std::string * /*message*/) {
                guard->reset(new InsertHints(next_hints));
                return guard->get();
            });
    });
}

} // namespace

bool spill_engine_hints_use(spill_insert_hints_t *hints, rocksdb_options_t *options, char **message)
{
    register_hints();
    next_hints = hints;
    const std::string text = std::string("memtable_insert_with_hint_prefix_extractor=") + kName;
    rocksdb_get_options_from_string(options, text.c_str(), options, message);
    next_hints = nullptr;
    return *message == nullptr;
}
