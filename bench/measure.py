"""Runs commands in turn (A B A B …) and prints wall time, peak memory and exit status of each run.

Run it with `-I -S`; it imports next to nothing, as a child's peak memory begins at that of the process that made it.
Standard input: one command a line: NAME=VALUE parted by \\x1f, then \\x1e, then arguments parted by \\x1f. "{pid}" is
another number in each run; a variable with it names a directory, made before the run.
"""

import os
import sys
import time


def once(command: str) -> str:
    """Run one command from a parent of its own; return "nanoseconds KiB status"."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, timed(command).encode())
        os._exit(0)
    os.close(writer)
    answer = os.read(reader, 100).decode()
    os.close(reader)
    os.wait()
    return answer


def timed(command: str) -> str:
    """Run one command with all streams to /dev/null."""
    variables, _, arguments = command.replace("{pid}", str(os.getpid())).partition("\x1e")
    for pair in command.partition("\x1e")[0].split("\x1f"):
        if "{pid}" in pair:
            os.mkdir(pair.partition("=")[2].replace("{pid}", str(os.getpid())), 0o700)
    argv = arguments.split("\x1f")
    env = dict([pair.split("=", 1) for pair in variables.split("\x1f") if pair])
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    start = time.perf_counter_ns()
    child = os.posix_spawn(argv[0], argv, env, file_actions=null)
    _, status, usage = os.wait4(child, 0)
    return f"{time.perf_counter_ns() - start} {usage.ru_maxrss} {os.waitstatus_to_exitcode(status)}"


def main() -> None:
    """Run each command once to warm the page cache, then all in turn, as often as argv says."""
    commands = sys.stdin.read().split("\n")
    for command in commands:
        once(command)
    for _ in range(int(sys.argv[1])):
        print("\t".join([once(command) for command in commands]))


main()
