/*
 * File systems for the engine. A reader's has the files of a pinned store; all other paths, for
 * example the target of a backup, go to the real file system. A writer's is the real file system,
 * but without the engine's file of messages. Both check the footer of a table before the engine
 * reads it (table_footer.h). And the check of one table file. C++, because the
 * engine's C interface has no way to pass one; the environment reaches the engine through its
 * registry of named objects.
 */
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <unistd.h>

#include <bson/bson.h>
#include <rocksdb/c.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/object_registry.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a C function may have the name of a struct */
extern "C" {
#include "store/embedded/folder.h"
#include "store/embedded/kv_rocksdb.h"
#include "store/embedded/table_footer.h"
}
#pragma GCC diagnostic pop

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace
{

const char *const kName = "spillway-pinned";

IOStatus read_pinned(const spill_pinned_file_t *file, uint64_t offset, size_t size, Slice *result,
                     char *scratch)
{
    int64_t got = spill_pinned_read(file, offset, scratch, size);
    *result = Slice(scratch, got > 0 ? static_cast<size_t>(got) : 0);
    if (got < 0)
        return IOStatus::IOError(file->name, std::strerror(errno));
    return IOStatus::OK();
}

class PinnedSequential : public rocksdb::FSSequentialFile
{
  public:
    explicit PinnedSequential(const spill_pinned_file_t *file) : file_(file)
    {
    }
    IOStatus Read(size_t size, const IOOptions & /*options*/, Slice *result, char *scratch,
                  IODebugContext * /*debug*/) override
    {
        IOStatus status = read_pinned(file_, at_, size, result, scratch);
        at_ += result->size();
        return status;
    }
    IOStatus Skip(uint64_t size) override
    {
        at_ += size;
        return IOStatus::OK();
    }

  private:
    const spill_pinned_file_t *file_;
    uint64_t at_ = 0;
};

class PinnedRandom : public rocksdb::FSRandomAccessFile
{
  public:
    explicit PinnedRandom(const spill_pinned_file_t *file) : file_(file)
    {
    }
    IOStatus Read(uint64_t offset, size_t size, const IOOptions & /*options*/, Slice *result,
                  char *scratch, IODebugContext * /*debug*/) const override
    {
        return read_pinned(file_, offset, size, result, scratch);
    }

  private:
    const spill_pinned_file_t *file_;
};

/* Check the footer of a file that is open, if its name is that of a table. */
IOStatus check_footer(const std::string &path, uint64_t size,
                      const rocksdb::FSRandomAccessFile &file, IODebugContext *debug)
{
    const std::string ending = ".sst";
    bool table = path.size() > ending.size() &&
                 path.compare(path.size() - ending.size(), ending.size(), ending) == 0;
    if (!table || size < SPILL_TABLE_FOOTER_BYTES)
        return IOStatus::OK();
    char scratch[SPILL_TABLE_FOOTER_BYTES];
    Slice footer;
    IOStatus status =
        file.Read(size - sizeof scratch, sizeof scratch, IOOptions(), &footer, scratch, debug);
    if (!status.ok() || footer.size() < sizeof scratch)
        return status;
    const char *problem =
        spill_table_footer_problem(reinterpret_cast<const uint8_t *>(footer.data()), size);
    if (problem)
        status = IOStatus::Corruption(path, problem);
    return status;
}

class NoLogger : public rocksdb::Logger
{
  public:
    using rocksdb::Logger::Logv;
    void Logv(const char * /*format*/, va_list /*arguments*/) override
    {
    }
};

/*
 * The engine writes no file LOG with messages. In Debian's library its assertions are on: after a
 * failed write of that file, on a full disk, one of them would end the process.
 */
class WriterFileSystem : public rocksdb::FileSystemWrapper
{
  public:
    WriterFileSystem() : FileSystemWrapper(FileSystem::Default())
    {
    }
    const char *Name() const override
    {
        return kName;
    }
    IOStatus NewLogger(const std::string & /*path*/, const IOOptions & /*options*/,
                       std::shared_ptr<rocksdb::Logger> *result,
                       IODebugContext * /*debug*/) override
    {
        *result = std::make_shared<NoLogger>();
        return IOStatus::OK();
    }
    IOStatus NewRandomAccessFile(const std::string &path, const rocksdb::FileOptions &options,
                                 std::unique_ptr<rocksdb::FSRandomAccessFile> *result,
                                 IODebugContext *debug) override
    {
        uint64_t size = 0;
        IOStatus status = target()->NewRandomAccessFile(path, options, result, debug);
        if (status.ok())
            status = target()->GetFileSize(path, options.io_options, &size, debug);
        return status.ok() ? check_footer(path, size, **result, debug) : status;
    }
};

class PinnedFileSystem : public rocksdb::FileSystemWrapper
{
  public:
    explicit PinnedFileSystem(const spill_pinned_t *pinned)
        : FileSystemWrapper(FileSystem::Default()), pinned_(pinned), folder_(trim(pinned->folder))
    {
    }
    const char *Name() const override
    {
        return kName;
    }
    IOStatus NewSequentialFile(const std::string &path, const rocksdb::FileOptions &options,
                               std::unique_ptr<rocksdb::FSSequentialFile> *result,
                               IODebugContext *debug) override
    {
        const spill_pinned_file_t *file = find(path);
        if (!file)
            return target()->NewSequentialFile(path, options, result, debug);
        result->reset(new PinnedSequential(file));
        return IOStatus::OK();
    }
    IOStatus NewRandomAccessFile(const std::string &path, const rocksdb::FileOptions &options,
                                 std::unique_ptr<rocksdb::FSRandomAccessFile> *result,
                                 IODebugContext *debug) override
    {
        const spill_pinned_file_t *file = find(path);
        if (!file)
            return target()->NewRandomAccessFile(path, options, result, debug);
        result->reset(new PinnedRandom(file));
        return check_footer(path, file->size_bytes, **result, debug);
    }
    IOStatus FileExists(const std::string &path, const IOOptions &options,
                        IODebugContext *debug) override
    {
        return find(path) ? IOStatus::OK() : target()->FileExists(path, options, debug);
    }
    IOStatus GetFileSize(const std::string &path, const IOOptions &options, uint64_t *size,
                         IODebugContext *debug) override
    {
        const spill_pinned_file_t *file = find(path);
        if (!file)
            return target()->GetFileSize(path, options, size, debug);
        *size = file->size_bytes;
        return IOStatus::OK();
    }
    IOStatus GetChildren(const std::string &path, const IOOptions &options,
                         std::vector<std::string> *result, IODebugContext *debug) override
    {
        if (trim(path) != folder_)
            return target()->GetChildren(path, options, result, debug);
        result->clear();
        for (size_t i = 0; i < pinned_->count; i++)
            result->emplace_back(pinned_->files[i].name);
        return IOStatus::OK();
    }
    IOStatus LinkFile(const std::string &path, const std::string &to, const IOOptions &options,
                      IODebugContext *debug) override
    {
        const spill_pinned_file_t *file = find(path);
        if (!file)
            return target()->LinkFile(path, to, options, debug);
        int problem = spill_pinned_link(file, to.c_str());
        if (problem != 0)
            return failed("While copying a file to", to, problem);
        return IOStatus::OK();
    }

  private:
    static std::string trim(std::string path)
    {
        while (path.size() > 1 && path.back() == '/')
            path.pop_back();
        return path;
    }
    static IOStatus failed(const char *what, const std::string &path, int problem)
    {
        std::string context = std::string(what) + " " + path;
        if (problem == ENOSPC)
            return IOStatus::NoSpace(context, std::strerror(problem));
        return IOStatus::IOError(context, std::strerror(problem));
    }
    const spill_pinned_file_t *find(const std::string &path) const
    {
        size_t slash = path.rfind('/');
        if (slash == std::string::npos || trim(path.substr(0, slash + 1)) != folder_)
            return nullptr;
        return spill_pinned_find(pinned_, path.c_str() + slash + 1);
    }

    const spill_pinned_t *pinned_;
    std::string folder_;
};

/* The environment that the registry returns to the thread that opens a database. */
thread_local rocksdb::Env *next_env = nullptr;

void register_env()
{
    static std::once_flag once;
    std::call_once(once, [] {
        rocksdb::ObjectLibrary::Default()->AddFactory<rocksdb::Env>(
            kName, [](const std::string & /*uri*/, std::unique_ptr<rocksdb::Env> *guard,
                      std::string * /*message*/) {
                guard->reset();
                return next_env;
            });
    });
}

/*
 * The engine merges tables at a lower priority, so that a merge delays no read. Writers wait for
 * merges that are far behind, so a merge cannot starve. Flushes keep their priority: memory is
 * freed by them. The threads belong to the process, as all threads of RocksDB's default
 * environment; a thread cannot raise its priority again.
 */
class CalmEnv : public rocksdb::EnvWrapper
{
  public:
    explicit CalmEnv(const std::shared_ptr<rocksdb::Env> &files) : EnvWrapper(files)
    {
        file_system_ = files->GetFileSystem();
        system_clock_ = files->GetSystemClock();
    }
    const char *Name() const override
    {
        return kName;
    }
    void Schedule(void (*function)(void *), void *argument, Priority priority, void *tag,
                  void (*unschedule)(void *)) override
    {
        if (priority == LOW)
            target()->Schedule(lower_priority, nullptr, priority, nullptr, nullptr);
        target()->Schedule(function, argument, priority, tag, unschedule);
    }

  private:
    static void lower_priority(void * /*argument*/)
    {
        enum { STEPS = 10 };
        static thread_local bool lowered = false;
        if (!lowered)
            (void)!nice(STEPS); /* on Linux: of this thread alone */
        lowered = true;
    }
};

} // namespace

struct spill_engine_files {
    explicit spill_engine_files(const std::shared_ptr<rocksdb::FileSystem> &files)
        : env(std::make_unique<CalmEnv>(rocksdb::NewCompositeEnv(files)))
    {
    }
    std::unique_ptr<rocksdb::Env> env;
};

spill_engine_files_t *spill_engine_files_new(const spill_pinned_t *pinned)
{
    if (!pinned)
        return new spill_engine_files(std::make_shared<WriterFileSystem>());
    return new spill_engine_files(std::make_shared<PinnedFileSystem>(pinned));
}

void spill_engine_files_free(spill_engine_files_t *files)
{
    delete files;
}

bool spill_engine_files_use(spill_engine_files_t *files, rocksdb_options_t *options, char **message)
{
    register_env();
    next_env = files->env.get();
    const std::string text = std::string("env=") + kName;
    rocksdb_get_options_from_string(options, text.c_str(), options, message);
    next_env = nullptr;
    return *message == nullptr;
}

/* ---- the check of a table file --------------------------------------------------------------- */

char *spill_engine_check_table(const char *path)
{
    rocksdb::Options options;
    rocksdb::BlockBasedTableOptions table;
    std::unique_ptr<rocksdb::Env> env =
        rocksdb::NewCompositeEnv(std::make_shared<WriterFileSystem>());
    options.env = env.get();
    table.no_block_cache = true;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::SstFileReader reader(options);
    rocksdb::Status status = reader.Open(path);
    if (status.ok())
        status = reader.VerifyChecksum();
    return status.ok() ? nullptr : bson_strdup(status.ToString().c_str());
}
