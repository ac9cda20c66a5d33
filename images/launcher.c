/* bin/NAME of the image tree: finds the tree that it lies in and starts the bundled Python on the plugin.
 *
 * Static, so that it needs nothing of the container; it allocates little and opens no file. NAME comes from the
 * compiler's command line. A failure is one error line and one hint, exit status 1, as in the plugins. */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

extern char **environ;

/* What would change the bundled interpreter or its loader, and is not meant for it. */
static const char *const dropped[] = {"LD_", "PYTHON", "GLIBC_TUNABLES=", "GCONV_PATH=", "LOCPATH=", "MALLOC_",
                                      "OPENSSL_CONF=", "OPENSSL_MODULES=", "OPENSSL_ENGINES="};
/* A tree that lacks one of these was copied in part. */
static const char *const needed[] = {"rt/ld.so", "rt/bin/python3.11", "rt/lib/libc.so.6",
                                     "rt/lib/python3.11/encodings/__init__.py", "app/__main__.pyc"};

static void die(const char *what, const char *path, const char *why, const char *code, const char *hint) {
    const char *parts[] = {NAME ": error: ", what, path, why, " [", code, "]\nhint: ", hint, "\n"};
    struct iovec lines[sizeof parts / sizeof *parts];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        lines[i] = (struct iovec){(void *)parts[i], strlen(parts[i])};
    if (writev(2, lines, sizeof parts / sizeof *parts) < 0) _exit(1);
    _exit(1);
}

static void *memory(size_t size) {
    void *block = malloc(size);
    if (!block) die("no memory", "", "", "no-memory", "raise the container's memory limit");
    return block;
}

static char *join(const char *first, const char *second) {
    char *text = memory(strlen(first) + strlen(second) + 1);
    return strcat(strcpy(text, first), second);
}

/* The launcher's own file, links resolved: from /proc, else (no /proc) from the path that the kernel was given. */
static void find_self(char self[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", self, PATH_MAX - 1);
    if (length > 0 && self[0] == '/') {
        self[length] = 0;
        if (!access(self, F_OK)) return;
    }
    const char *started = (const char *)getauxval(AT_EXECFN);
    if (!started || !realpath(started, self))
        die("cannot find its own file", "", "", "self-unknown", "mount /proc, or start it by its absolute path");
}

/* Cut `/bin/…` off and append the tree's folder. */
static char *find_tree(char *self) {
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(self, '/');
        if (slash) *slash = 0;
    }
    if (self[strcspn(self, ":;$\n")])
        die("the mount path holds a character that the loader takes apart (: ; $ or a newline)", "", "", "mount-path",
            "mount the plugin's volume elsewhere");
    return join(self, "/lib/" NAME "/");
}

static int is_dropped(const char *entry) {
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if (!strncmp(entry, dropped[i], strlen(dropped[i]))) return 1;
    return 0;
}

static char **clean_environment(const char *tree) {
    size_t count = 0, kept = 0;
    while (environ[count]) count++;
    char **clean = memory((count + 2) * sizeof *clean);
    for (size_t i = 0; i < count; i++)
        if (!is_dropped(environ[i])) clean[kept++] = environ[i];
    /* Else libcrypto reads the container's. */
    clean[kept++] = join(join("OPENSSL_CONF=", tree), "etc/openssl.cnf");
    clean[kept] = NULL;
    return clean;
}

int main(int argc, char **argv) {
    char self[PATH_MAX];
    find_self(self);
    char *tree = find_tree(self);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        char *path = join(tree, needed[i]);
        if (access(path, F_OK))
            die("its files are not all there: ", path, " is missing", "tree-incomplete",
                "copy bin and lib together, best with: " NAME " install DIR");
        free(path);
    }
    char *loader = join(tree, "rt/ld.so");
    char *start[] = {loader, "--inhibit-cache", "--library-path", join(tree, "rt/lib"), join(tree, "rt/bin/python3.11"),
                     "-I", "-S", "-B", "-X", "utf8", join(tree, "app/__main__.pyc")};
    size_t fixed = sizeof start / sizeof *start, given = argc > 1 ? (size_t)argc - 1 : 0;
    char **arguments = memory((fixed + given + 1) * sizeof *arguments);
    memcpy(arguments, start, sizeof start);
    if (given) memcpy(arguments + fixed, argv + 1, given * sizeof *arguments);
    arguments[fixed + given] = NULL;
    execve(loader, arguments, clean_environment(tree));
    if (errno == ENOEXEC)
        die("", loader, " is for another processor than bin/" NAME, "wrong-architecture",
            "install the image of this machine's architecture, bin and lib together");
    if (errno == EACCES)
        die("", loader, " may not be executed", "not-executable",
            "the volume is mounted noexec, or the file lost its mode: copy it with " NAME " install DIR");
    die("cannot start ", loader, join(": ", strerror(errno)), "start-failed",
        "look at the pod's seccomp or AppArmor profile and its limits of processes and memory");
}
