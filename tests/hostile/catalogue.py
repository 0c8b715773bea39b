# SPDX-License-Identifier: Apache-2.0
"""The catalogue of hostile programs: one line each. README.md says how to add one."""

from comparison import Program

SHORT_WAITS = ("msgrcv", "semop", "semtimedop", "semtimedop_direct", "recv", "poll", "select", "epoll_wait",
               "epoll_pwait_by_syscall", "futex", "sem_timedwait", "sigtimedwait")

GDB = "gdb -nx -q -batch -ex \"set print thread-events off\" -ex \"set debuginfod enabled off\""
NO_IDS = "2>&1 | sed -e \"s/process [0-9]*/process N/\" -e \"s/LWP [0-9]*/LWP N/\" -e \"s/0x[0-9a-f]*/ADDRESS/g\" -e \"/libthread_db/d\""

# As many as there are debug registers, on words that nobody touches.
GDB_WATCHES = " ".join(f"-ex \"watch hostile::shared_line.words[{word}]\"" for word in (4, 5, 6, 7))

# The usual limit of descriptors. Our descriptors lie above it, and no program sees them below its limit.
USUAL_LIMIT = "sh -c 'ulimit -S -n 1024; exec"

LIMITS = "sh -c 'ulimit -Sa; ulimit -Ha; exec"
UNRECORDED = {"profile": False, "says": "nothing is recorded"}

CATALOGUE = [
    # ---- timers ---------------------------------------------------------------------------------------------
    Program("timers.early_threads", "@/timers early_threads", "a library's threads, idle since before the start, get no timer each time somebody looks", traps=True),
    Program("timers.raw_sleepers", "@/timers raw_sleepers", "so do threads made by raw clone", traps=True),
    Program("timers.uring_workers", "@/timers uring_workers", "so do io_uring's workers, and their requests are served", traps=True, needs=("io_uring",)),
    Program("timers.until_refused", "@/timers until_refused", "as many timers can be made as RLIMIT_SIGPENDING allows", own_user=True),
    Program("timers.churn", "@/timers churn", "threads that have ended leave no timers"),
    Program("timers.profiling_ticks", "@/timers profiling_ticks", "ITIMER_PROF ticks as often as it should, and nobody else sends SIGPROF", traps=True),
    Program("timers.virtual_ticks", "@/timers virtual_ticks", "ITIMER_VIRTUAL likewise", traps=True),
    Program("timers.alarms_interrupt", "@/timers alarms_interrupt", "alarms, and nothing else, interrupt a sleep", traps=True),
    Program("timers.cpu_limit", "@/timers cpu_limit", "SIGXCPU comes once, and not too early", traps=True),
    Program("timers.own_timers", "@/timers own_timers", "timers of three clocks and two ways to notify keep their time, signal and value", traps=True),
    Program("timers.interval_timers_as_read", "@/timers interval_timers_as_read", "the three interval timers are free, and read as set"),
    Program("timers.thousands_of_threads", "@/timers thousands_of_threads 5000", "more threads than the collector has room for are left alone"),

    Program("timers.none_allowed", "prlimit --sigpending=0 @/children busy 0 0.3", "no signal can be queued and no timer made", traps=True, own_user=True),

    # ---- signals --------------------------------------------------------------------------------------------
    Program("signals.ignored", "@/signals ignored", "all signals can be ignored", traps=True),
    Program("signals.waited_for", "@/signals waited_for", "all can be blocked and waited for, with their values", traps=True),
    Program("signals.one_waited_for_trap", "@/signals one_waited_for 5", "SIGTRAP alone is blocked and waited for", traps=True),
    Program("signals.one_waited_for_rtmax", "@/signals one_waited_for RTMAX", "SIGRTMAX likewise", traps=True),
    Program("signals.one_waited_for_urg", "@/signals one_waited_for 23", "SIGURG likewise", traps=True),
    Program("signals.by_descriptor", "@/signals by_descriptor", "all can be taken from a signalfd", traps=True),
    Program("signals.defaults", "@/signals defaults", "each signal does to a busy child what it does by default", traps=True),
    Program("signals.handlers", "@/signals handlers", "all can be handled; handlers are found as set and called once a signal", traps=True),
    Program("signals.masks", "@/signals masks", "masks are as asked for: in threads, after jumps, after exec, ignored ones too", traps=True),
    Program("signals.signal_thread", "@/signals signal_thread", "one thread takes all signals by sigwait while others work"),
    Program("signals.pauses", "@/signals pauses", "pause() returns for the program's signals, for each and for no other"),
    Program("signals.jumps", "@/signals jumps", "a handler is left by siglongjmp, 300 times"),
    Program("signals.nested", "@/signals nested", "handlers nest"),
    Program("signals.queue", "@/signals queue", "a thousand queued signals come in order; nobody else queues", traps=True, own_user=True),
    Program("signals.from_parent", "@/signals from_parent", "a parent's signal kills its child, is ignored or caught"),
    Program("signals.stopped", "@/signals stopped", "SIGSTOP and SIGCONT are seen by the parent"),
    Program("signals.of_libc", "@/odd_signals of_libc", "signals 32, 33, 34, 63 and 64 by system calls"),
    Program("signals.own_runtime", "@/direct_signals own_runtime", "a runtime has all signals for itself, by instructions of its own; none comes",
            samples=False, says="by an instruction of its own"),
    Program("signals.blocked_by_direct_call", "@/direct_signals blocked_by_direct_call", "all signals are blocked by an instruction of the program's own; none is pending",
            samples=False, says="by an instruction of its own"),
    Program("signals.of_sockets", "@/odd_signals of_sockets", "urgent and other data are told by SIGURG and SIGRTMAX", traps=True),

    # ---- seccomp --------------------------------------------------------------------------------------------
    *(Program(f"seccomp.alone_{way}", f"@/seccomp alone {way}", f"one thread enters a filter that kills, by {way}", traps=True)
      for way in ("prctl", "syscall", "syscall_prctl", "tsync")),
    Program("seccomp.together_tsync", "@/seccomp together tsync", "four busy threads enter at once", traps=True),
    Program("seccomp.sleepers_tsync", "@/seccomp sleepers tsync", "sleeping threads wake in a sandbox that they were put into", traps=True),
    *(Program(f"seccomp.{what}_{way}", f"@/seccomp_direct {what} {way}", f"the same, by an instruction of the program's own: {what}, {way}",
              samples=False, says="by an instruction of its own is not observed")
      for what, way in (("alone", "direct"), ("alone", "direct_prctl"), ("alone", "direct_tsync"), ("together", "direct_tsync"),
                        ("sleepers", "direct_tsync"))),
    Program("seccomp.strict", "@/seccomp strict", "strict mode, by prctl", traps=True),
    Program("seccomp.strict_by_direct_call", "@/seccomp_direct strict_by_direct_call", "strict mode, by an instruction of the program's own",
            samples=False, says="by an instruction of its own is not observed"),
    Program("seccomp.told", "@/seccomp told", "SIGSYS tells of the program's calls only"),
    Program("seccomp.refused", "@/seccomp refused tsync", "ENOSYS for all that is not allowed"),
    Program("seccomp.workers", "@/seccomp workers syscall", "worker processes enter after a fork"),
    Program("seccomp.one_thread", "@/seccomp one_thread prctl", "one thread enters, the others stay outside"),
    Program("seccomp.in_a_container", "@/children many", "a container forbids what a profiler needs", around="@/seccomp contain"),

    # ---- calls that sleep -----------------------------------------------------------------------------------
    Program("interrupted_calls.sleeps", "@/interrupted_calls sleeps", "sleeps end in time and are not interrupted", traps=True),
    Program("interrupted_calls.system_calls", "@/interrupted_calls system_calls", "so do those made by syscall()", traps=True),
    Program("interrupted_calls.direct_calls", "@/interrupted_calls direct_calls", "so do those made by instructions of the program's own", traps=True),
    Program("interrupted_calls.sockets", "@/interrupted_calls sockets", "sockets with time-outs wait as long as they should", traps=True),
    Program("interrupted_calls.queues", "@/interrupted_calls queues", "queues and semaphores of System V and POSIX", traps=True),
    Program("interrupted_calls.pthread_waits", "@/interrupted_calls pthread_waits", "semaphores, conditions and locks with time-outs", traps=True),
    Program("interrupted_calls.events", "@/interrupted_calls events", "pipes, locks of files, children, signals and io_getevents", traps=True),
    Program("interrupted_calls.beside_processes", "@/interrupted_calls beside_processes", "sleepers whose line two other processes exchange", traps=True),

    *(Program(f"interrupted_calls.short_{way}", f"@/short_waits threads {way}", f"{way} is not interrupted in threads that hand over to each other by it")
      for way in SHORT_WAITS),
    *(Program(f"interrupted_calls.short_{way}_processes", f"@/short_waits processes {way}", f"nor is {way} in processes that share a line")
      for way in SHORT_WAITS),

    # ---- stacks ---------------------------------------------------------------------------------------------
    *(Program(f"stacks.unused_alternate_{size}", f"@/stacks unused_alternate {size}", f"an alternate stack of {size} bytes is set and never used")
      for size in (2048, 4096, 6144, 8192)),
    *(Program(f"stacks.faults_on_alternate_{size}", f"@/stacks faults_on_alternate {size}", f"faults are handled on an alternate stack of {size} bytes")
      for size in (4096, 8192, 16384)),
    Program("stacks.no_alternate", "@/stacks no_alternate", "SA_ONSTACK without an alternate stack runs on the thread's own"),
    Program("stacks.alternate_as_read", "@/stacks alternate_as_read", "sigaltstack tells what the program has set", traps=True),
    *(Program(f"stacks.coroutines_{size}", f"@/stacks coroutines {size}", f"coroutines on stacks of {size} bytes") for size in (2048, 4096, 16384)),
    Program("stacks.smallest_stack", "@/stacks smallest_stack", "threads with the smallest stack that libc gives"),
    *(Program(f"stacks.near_the_end_{room}", f"@/stacks near_the_end {room}", f"work with {room} bytes of stack left") for room in (512, 2048)),
    Program("stacks.below_the_red_zone", "@/stacks below_the_red_zone", "data far below the stack pointer, in a program without handlers"),
    Program("stacks.stack_pointer_as_a_register", "@/stacks stack_pointer_as_a_register", "the stack pointer holds a number"),
    Program("stacks.overflow_caught", "@/stacks overflow_caught", "stack overflows are caught, ten times"),
    Program("stacks.jump_off_alternate", "@/stacks jump_off_alternate", "jumps leave handlers on the alternate stack"),
    Program("stacks.disarming", "@/stacks disarming", "an alternate stack that disarms itself"),
    Program("stacks.guard_page_in_a_frame", "@/stacks guard_page_in_a_frame", "threads made below a frame with a guard page"),
    # Programs that ask for alternate stacks.
    Program("stacks.burns_on_600", "@/alternate_stacks burns_on 600", "a handler runs on a stack that has room for the kernel's frame and 600 bytes", traps=True),
    Program("stacks.burns_on_4096", "@/alternate_stacks burns_on 4096", "likewise, and a page", traps=True),
    Program("stacks.too_small", "@/alternate_stacks too_small", "the kernel kills where its frame has no room on the alternate stack", traps=True),
    Program("stacks.none_set", "@/alternate_stacks none_set", "handlers with SA_ONSTACK run close to what they interrupt where there is no alternate stack, in threads, too", traps=True),
    Program("stacks.deep", "@/alternate_stacks deep", "such a handler has all of the stack for itself", traps=True),
    Program("stacks.queries", "@/alternate_stacks queries", "sigaltstack answers, changes and refuses as it does, in handlers and outside", traps=True),
    Program("stacks.children", "@/alternate_stacks children", "children by fork, vfork and posix_spawn have the stack that they should have", traps=True),
    Program("stacks.jumps", "@/alternate_stacks jumps", "handlers are left by jumps, with an alternate stack and without", traps=True),
    Program("stacks.overflow", "@/alternate_stacks overflow", "stack overflows of the main thread and of another are caught on alternate stacks", traps=True),
    Program("stacks.overflow_without", "@/alternate_stacks overflow_without", "a stack overflow kills where there is no alternate stack", traps=True),
    Program("stacks.nested", "@/alternate_stacks nested", "handlers nest on the stack that they are on", traps=True),
    Program("stacks.context", "@/alternate_stacks context", "registers that a handler changes in its context are changed, all others are kept", traps=True),
    Program("stacks.context_alternate", "@/alternate_stacks context alternate", "likewise on an alternate stack", traps=True),
    Program("stacks.unwinding", "@/alternate_stacks unwinding", "backtraces and exceptions cross handlers' frames", traps=True),
    Program("stacks.actions", "@/alternate_stacks actions", "handlers with SA_ONSTACK are found as set, by all of libc's functions; SA_NODEFER and SA_RESETHAND act", traps=True),
    Program("stacks.own_stacks", "@/alternate_stacks own_stacks", "threads set, use and give back alternate stacks of their own", traps=True),
    Program("stacks.end_in_handler", "@/alternate_stacks end_in_handler", "threads end in handlers"),
    Program("stacks.by_system_call", "@/alternate_stacks by_system_call", "an alternate stack that was set by the system call is used", traps=True),
    Program("stacks.handler_by_system_call", "@/alternate_stacks handler_by_system_call", "a handler that was set by the system call is called", traps=True),
    Program("stacks.own_traps", "@/alternate_stacks own_traps", "handlers of the program's own breakpoints run on the stack that they should", traps=True),
    Program("stacks.often", "@/alternate_stacks often", "a thousand signals a second are handled where they should be", traps=True),

    # ---- attached to while they run -----------------------------------------------------------------------------
    *(Program(f"attached.{what}_{way}", f"@/{command}", f"{proves}, attached to ({way})", way=way, samples=False)
      for way in ("outside", "inject")
      for what, command, proves in (
          ("masks", "signals masks", "masks are as asked for"),
          ("handlers", "signals handlers", "handlers are found as set and called once a signal"),
          ("cancelled", "threads cancelled", "threads are cancelled at any instruction"),
          ("raw_exits", "threads raw_exits", "threads vanish"),
          ("exec", "forks exec_from_a_thread", "a chain of execs from threads"),
          ("forks", "forks while_allocating", "forks while other threads allocate"),
          ("vfork_storm", "children vfork_storm", "six threads make children by vfork at once"),
          ("traced", "children attached", "a parent attaches to its busy child by ptrace"),
          ("limit", "descriptors up_to_the_limit 512 80", "all descriptors are used up"),
          ("churn", "timers churn", "threads that have ended leave no timers"),
          ("thread_pointer", "states other_thread_pointer", "the thread pointer points to zeros, or to nothing"))),
    *(Program(f"attached.queue_{way}", "@/signals queue", f"a thousand queued signals come in order, attached to ({way})", way=way, samples=False, own_user=True)
      for way in ("outside", "inject")),
    *(Program(f"attached.killed_{what}_{way}", f"@/{command}", f"the recorder is killed at some moment: {proves}", way=f"{way}_killed")
      for way in ("outside", "inject")
      for what, command, proves in (("handlers", "signals handlers", "signals are handled"),
                                    ("churn", "timers churn", "threads that have ended leave no timers"))),
    Program("attached.gdb_watches", f"sh -c '{GDB} -ex \"break main\" -ex run {GDB_WATCHES} -ex continue --args @/children busy 7 1 {NO_IDS}'",
            "a debugger has all four debug registers for itself", needs=("gdb",), way="tree", samples=False),
    Program("attached.tree", "@/children many", "48 children, eight at a time, all of them met", way="tree", samples=False),

    # ---- memory ---------------------------------------------------------------------------------------------
    Program("memory.core_size", "@/memory core_size", "a core file is as small as the program", needs=("core_files",), samples=True),
    Program("memory.limit_of_the_shell", "sh -c 'ulimit -v 250000; @/memory allocate 100'", "100 MiB fit below `ulimit -v 250000`", traps=True),
    Program("memory.data_limit_of_the_shell", "sh -c 'ulimit -d 200000; @/memory allocate 100'", "100 MiB fit below `ulimit -d 200000`", traps=True),
    Program("memory.address_space_left", "@/memory address_space_left", "nothing is mapped behind a program's back that counts against its limit", traps=True),
    Program("memory.limit_for_all", "@/memory allocate 100", "`ulimit -v 400000`, for the recorder, too", around="sh -c 'ulimit -v 400000; exec \"$@\"' sh"),
    Program("memory.data_left", "@/memory data_left", "nor against that of its data", traps=True),
    Program("memory.lock_all", "@/memory lock_all", "mlockall locks a small program's memory", own_user=True),
    Program("memory.read_all", "@/memory read_all", "all readable mappings can be read, and are not many"),
    Program("memory.writable_code", "@/memory writable_code", "no mapping is writable and executable", traps=True),
    Program("memory.write_barrier", "@/memory write_barrier", "a collector's protected pages fault once each, for the program's own stores"),
    Program("memory.user_faults", "@/memory user_faults", "userfaultfd fills pages that the program touches"),
    Program("memory.truncated_file", "@/memory truncated_file", "pages of a file that was cut off raise SIGBUS once each"),
    Program("memory.small_files", "sh -c 'ulimit -f 8; exec @/memory small_files'", "no file can grow; 400 threads come and go"),
    Program("memory.program_break", "@/memory program_break", "sbrk grows without holes", traps=True),
    Program("memory.heap_in_use", "@/memory heap_in_use", "malloc's bytes in use are the program's", traps=True),
    Program("memory.small_stack", "sh -c 'ulimit -s 256; @/memory small_stack'", "a main stack of 256 KiB", traps=True),
    Program("memory.restless_mappings", "@/memory restless_mappings", "memory is mapped, protected, dropped and truncated all the time; all faults are the program's own"),
    Program("memory.moving_page", "@/memory moving_page", "a page that threads exchange is moved, fifty times"),

    # ---- descriptors ----------------------------------------------------------------------------------------
    Program("descriptors.up_to_the_limit", "@/descriptors up_to_the_limit 512 80", "80 threads and as many sockets as 512 descriptors allow"),
    Program("descriptors.few", "@/descriptors up_to_the_limit 16 6", "six threads, 16 descriptors"),
    Program("descriptors.limit_of_the_shell", "sh -c 'ulimit -n 64; exec @/descriptors inherited_limit'", "`ulimit -n 64`, seen and used up"),
    Program("descriptors.soft_limit_of_the_shell", "sh -c 'ulimit -S -n 64; exec @/descriptors inherited_limit'", "`ulimit -S -n 64`, seen and used up"),
    Program("descriptors.listing", f"{USUAL_LIMIT} @/descriptors listing'", "no descriptors but the program's own below its limit, in children neither", traps=True),
    *(Program(f"descriptors.close_all_{way}", f"{USUAL_LIMIT} @/descriptors close_all {way}'", f"all are closed by {way}", traps=True)
      for way in ("loop", "listing", "closefrom", "close_range", "close_range_by_syscall", "unshare", "on_exec")),
    Program("descriptors.chosen_numbers", "@/descriptors chosen_numbers", "dup2 to the highest numbers", traps=True),
    Program("descriptors.moving_limit", "@/descriptors moving_limit", "a limit that moves while threads come and go"),
    Program("descriptors.limit_as_seen", "@/descriptors limit_as_seen", "no other thread sees another limit, even for a moment"),
    Program("descriptors.without_streams", "@/descriptors without_streams", "standard streams are closed and their numbers given again", traps=True),
    Program("descriptors.closed_at_start", "@/descriptors closed_at_start", "standard streams were closed before the program began, and before the recorder did", around="sh -c 'exec \"$@\" 0<&- 1>&- 2>&-' sh", traps=True),
    Program("descriptors.limits_of_zero", "@/descriptors limits_of_zero", "nothing can be opened, no process made, no file written", traps=True, own_user=True),
    Program("descriptors.few_for_all", "@/descriptors inherited_limit", "32 descriptors, for the recorder, too", around="prlimit --nofile=32:32"),
    Program("descriptors.selectable", "@/descriptors selectable", "descriptors are low enough for select", traps=True),
    Program("descriptors.passed_on", "@/descriptors passed_on", "children get the descriptors that they are meant to get", traps=True),
    Program("descriptors.short_of_numbers", f"{USUAL_LIMIT} @/descriptors short_of_numbers 2'", "two numbers are left, and each open gets the one that it should"),
    Program("descriptors.raised_limit", f"{USUAL_LIMIT} @/descriptors raised_limit'", "the limit is raised; the numbers above the old one are the program's", traps=True),
    Program("descriptors.raised_limit_of_a_partner", f"{USUAL_LIMIT} @/descriptors raised_limit_of_a_partner'", "the same while a line is exchanged with another process: none but the program's own below the new limit", traps=True),
    Program("descriptors.own_table", f"{USUAL_LIMIT} @/descriptors own_table'", "a thread with descriptors of its own", traps=True),
    Program("descriptors.limit_of_children", f"{USUAL_LIMIT} @/descriptors limit_of_children'", "children by vfork, _Fork, fork by syscall(), posix_spawn and system have their parent's limit"),
    Program("descriptors.spawn_actions", f"{USUAL_LIMIT} @/descriptors spawn_actions'", "file actions of posix_spawn, closefrom among them", traps=True),

    # ---- threads --------------------------------------------------------------------------------------------
    Program("threads.cancelled", "@/threads cancelled", "threads are cancelled at any instruction and at cancellation points; handlers and destructors run"),
    Program("threads.main_ends_first", "@/threads main_ends_first", "main ends by pthread_exit, another thread ends the process"),
    Program("threads.main_ends_raw", "@/threads main_ends_raw", "main ends by a raw exit, another thread ends the process"),
    Program("threads.change_user", "@/threads change_user", "all threads change user, busy or asleep", needs=("root",)),
    Program("threads.raw_exits", "@/threads raw_exits", "threads that end by a raw exit leave nothing behind"),
    Program("threads.robust_locks", "@/threads robust_locks", "holders of robust locks die, the next is told"),
    Program("threads.own_breakpoints", "@/threads own_breakpoints", "all four breakpoint registers are the program's when it wants them", traps=True),
    Program("threads.as_seen", "@/threads as_seen", "number of threads, name, processors, priority and limits are as without us", traps=True),
    Program("threads.not_dumpable", "@/threads not_dumpable", "PR_SET_DUMPABLE 0"),
    Program("threads.errors", "@/threads errors", "errno is each thread's own"),
    Program("threads.as_many_as_allowed", "@/threads as_many_as_allowed", "as many threads as RLIMIT_NPROC allows", own_user=True),
    Program("threads.registers", "@/threads registers", "flags and vector registers survive"),
    Program("threads.last_words", "@/threads last_words", "thread-local objects are destroyed, destructors of keys called as often as libc says"),
    Program("threads.keys", "@/threads keys", "all of libc's keys are the program's", traps=True),
    Program("threads.inheriting_locks", "@/threads inheriting_locks", "robust locks with priority inheritance"),
    Program("threads.signals_from_the_start", "@/threads signals_from_the_start", "threads handle signals from their first instruction to their last"),

    # ---- children -------------------------------------------------------------------------------------------
    Program("children.failed_exec", "@/forks failed_exec", "execs that fail change nothing", traps=True),
    Program("children.exec_from_a_thread", "@/forks exec_from_a_thread", "a chain of execs from threads, with others busy", traps=True),
    Program("children.ways_to_make", "@/children ways_to_make", "nine ways to make a child", traps=True),
    Program("children.raw_fork_then_threads", "@/children raw_fork_then_threads Fork", "threads in a child of _Fork", traps=True),
    Program("children.raw_fork_by_syscall_then_threads", "@/children raw_fork_then_threads syscall", "threads in a child of a fork by syscall()", traps=True),
    Program("children.sharing_process", "@/children sharing_process", "processes that share all memory"),
    Program("children.killed", "@/children killed_child", "children that are killed while they exchange lines", traps=True),
    Program("children.daemonize", "@/children daemonize", "a daemon with a session of its own", traps=True),
    Program("children.orphan", "@/children orphan", "who adopts a child whose parent has ended", traps=True),
    Program("children.outlives", "sh -c '(@/children busy 0 0.3; echo late) & echo early'", "a child that goes on when the command has ended is waited for by who reads its output", traps=True),
    Program("children.adopts", "@/children adopts", "a supervisor adopts the children of its children", traps=True),
    Program("children.death_signal", "@/children death_signal", "no death of a parent is told", traps=True),
    Program("children.environment", "@/children environment", "the environment is the user's, in children the one that was made for them", traps=True),
    Program("children.cleared_environment", "@/children cleared_environment", "exec with an empty environment", traps=True),
    Program("children.env_i", "sh -c '@/children busy 1 0.2; env -i @/children busy 3'", "env -i", traps=True),
    Program("children.inherited", "@/children inherited", "ignored and blocked signals, mask, death signal at the begin of main", traps=True),
    Program("children.traced", "@/children traced", "a child is traced; it stops at its exec only", traps=True),
    Program("children.attached", "@/children attached", "a parent attaches to its busy child by ptrace, twenty times"),
    Program("children.group", "@/children signal_to_the_group", "signals to the process group are handled by who is in it", traps=True),
    Program("children.forks_while_allocating", "@/forks while_allocating", "forks while other threads allocate; the children allocate, too"),
    Program("children.atfork", "@/forks with_handlers", "handlers around forks", traps=True),
    Program("children.among_short_threads", "@/forks among_short_threads", "forks while threads come and go"),
    Program("children.forks_in_handlers", "@/forks in_handlers", "forks and an exec in a signal handler"),
    Program("children.kill_recorder", "@/forks alone_later", "the command goes on when its recorder is killed", around="python3 @HERE/around.py kill_recorder", needs=("python3",), profile=False),
    Program("children.stop_recorder", "@/forks alone_later", "nor does it wait for a recorder that is stopped", around="python3 @HERE/around.py stop_recorder", needs=("python3",)),
    Program("children.stops_itself", "@/children stops_itself", "who has started it sees that a program stops itself", traps=True, around="python3 @HERE/around.py stop", needs=("python3",)),
    *(Program(f"children.terminal_{what}", "@/children at_a_terminal", f"a terminal: {what}", around=f"python3 @HERE/around.py {what}", needs=("python3",))
      for what in ("hang_up", "interrupt", "quit")),
    Program("children.many", "@/children many", "48 children, eight at a time"),
    Program("children.executes_memory", "@/children executes_memory", "a program without a name is executed", traps=True),
    Program("children.vfork_storm", "@/children vfork_storm", "six threads make children by vfork at once"),
    Program("children.pipeline", "sh -c '@/children writes_much | head -n 3; echo done'", "a writer whose reader goes away", traps=True),
    Program("children.setuid", "sh -c 'cp @/children s && chown 65534 s && chmod 4755 s && @/children run ./s busy 3'", "a set-user-id program as child", traps=True, needs=("root",)),
    *(Program(f"children.{small}", f"@/children run @/{small} one two", f"{small} as child", traps=True, says=small, needs=(small,))
      for small in ("small_musl", "small_musl_static", "small_static", "small_static_pie", "small_address", "thirty_two_bits", "thirty_two_bits_dynamic")),
    *(Program(f"children.{small}", f"@/children run @/{small} one two", f"{small} as child", traps=True, needs=(small,))
      for small in ("small_undefined", "small_profiled")),
    Program("children.small_thread", "setarch -R @/children run @/small_thread one two", "small_thread (without randomised addresses, which its library cannot live with) as child", traps=True, says="small_thread", needs=("small_thread", "setarch")),
    Program("children.gdb_runs", f"sh -c '{GDB} -ex run --args @/children busy 7 0.2 {NO_IDS}'", "a debugger runs a program", needs=("gdb",), samples=False),
    Program("children.gdb_breaks", f"sh -c '{GDB} -ex \"break hostile::exchange\" -ex run -ex \"info threads\" -ex continue --args @/children busy 7 0.2 {NO_IDS}'", "and stops it at a breakpoint", needs=("gdb",), samples=False),
    Program("children.gdb_watches", f"sh -c '{GDB} -ex \"break main\" -ex run -ex \"watch hostile::shared_line.words[7]\" -ex continue --args @/children busy 7 0.2 {NO_IDS}'", "and watches a variable", needs=("gdb",), samples=False),
    Program("children.gdb_attaches", f"sh -c '@/children busy 7 0.6 & sleep 0.3; {GDB} -ex \"bt 1\" -ex detach -p $! > /dev/null 2>&1; wait $!; echo $?'", "and attaches to a program that runs", needs=("gdb",), samples=False),
    Program("children.recorded_inside", "@CROSSTALK record -q -o inner.db -- @/children busy 8 0.2", "a recording inside the recording", samples=False),
    *(Program(f"children.python_{what}", f"python3 @HERE/programs/of_python.py {what}", f"Python: {what}", needs=("python3",))
      for what in ("threads", "alarms", "processes", "children")),

    # ---- namespaces -----------------------------------------------------------------------------------------
    Program("namespaces.pid", "unshare --pid --fork @/namespaces numbered_family", "processes in another pid namespace", needs=("pid_namespaces",), samples=False),
    Program("namespaces.pid_with_proc", "unshare --pid --fork --mount-proc @/namespaces numbered_family", "and with its own /proc", needs=("pid_namespaces",), samples=False),
    Program("namespaces.user", "unshare --user --map-root-user @/namespaces family", "processes in another user namespace", needs=("user_namespaces",), samples=False, says="cannot reach the recorder"),
    Program("namespaces.many", "unshare --user --map-root-user --pid --fork --mount-proc --net --ipc --uts @/namespaces numbered_family", "as a container has them", needs=("user_namespaces",), samples=False),
    Program("namespaces.time", "unshare --time --monotonic 100000 @/namespaces family", "another monotonic clock", needs=("time_namespaces",), samples=False),
    Program("namespaces.no_proc", "unshare --mount sh -c 'umount -l /proc; exec @/namespaces family'", "no /proc", needs=("pid_namespaces",), samples=False, says="cannot reach the recorder"),
    Program("namespaces.children_elsewhere", "@/namespaces children_elsewhere", "children go into another pid namespace, their parent does not", needs=("pid_namespaces",), traps=True),
    Program("namespaces.thread_elsewhere", "@/namespaces thread_elsewhere", "a thread goes into a namespace of its own", needs=("pid_namespaces",)),
    Program("namespaces.user_elsewhere", "@/namespaces user_elsewhere", "a busy process changes its user namespace", needs=("user_namespaces",), traps=True),
    Program("namespaces.empty_root", "@/namespaces empty_root", "a root without /proc", needs=("root",), traps=True),

    # ---- libraries ------------------------------------------------------------------------------------------
    Program("libraries.come_and_go", "@/libraries come_and_go", "a library is unloaded when its user lets it go"),
    Program("libraries.other_namespace", "@/libraries other_namespace", "dlmopen: a second libc"),
    Program("libraries.fake_clock", "@/libraries fake_clock", "a preloaded clock_gettime is the program's only", environment=("LD_PRELOAD=@/libfake_clock.so",), traps=True),
    Program("libraries.first", "@/children busy 0 0.3", "a library that is initialized before all others loads one", environment=("LD_PRELOAD=@/libfirst.so",), traps=True),
    Program("libraries.farewells", "@/libraries farewells", "what is to be done at exit is done", traps=True),
    Program("libraries.storm", "@/libraries storm", "four threads load, use and unload a library at once"),
    Program("libraries.looked_at_together", "@/libraries looked_at_together", "who looks at the modules waits for threads that start and allocate", traps=True),
    Program("libraries.own_malloc", "@/own_malloc", "an allocator serves the program only"),

    # ---- OpenMP, with waits measured ------------------------------------------------------------------------
    Program("openmp.no_tool", "@/openmp_llvm forks", "the runtime library has no tool", options="--waits", needs=("openmp_llvm",)),
    Program("openmp.own_tool", "@/openmp_own_tool", "the program's tool is told all", options="--waits", needs=("openmp_own_tool",)),
    Program("openmp.named_tool", "@/openmp_llvm", "the user's tool is told all", options="--waits", environment=("OMP_TOOL_LIBRARIES=@/libopenmp_tool.so",), needs=("libopenmp_tool.so",)),
    Program("openmp.preloaded_tool", "@/openmp_llvm", "a preloaded tool is told all", options="--waits", environment=("LD_PRELOAD=@/libopenmp_tool.so",), needs=("libopenmp_tool.so",)),
    Program("openmp.told_search", "@/openmp_llvm", "what tools were looked for is printed", options="--waits", environment=("OMP_TOOL_VERBOSE_INIT=stdout",), needs=("openmp_llvm",)),
    Program("openmp.not_measured", "@/openmp_llvm forks", "nor is there one without waits", needs=("openmp_llvm",)),

    # ---- states ---------------------------------------------------------------------------------------------
    Program("states.alignment_checked", "@/states alignment_checked", "accesses that are not aligned fault: nobody makes one"),
    Program("states.float_exceptions", "@/states float_exceptions", "inexact results raise signals, rounding is upwards"),
    Program("states.other_thread_pointer", "@/states other_thread_pointer", "the thread pointer points to zeros, or to nothing"),
    Program("states.no_vdso", "@/states no_vdso", "the kernel's page of fast clocks is unmapped"),
    Program("states.rewrites_code", "@/states rewrites_code", "code is made anew where other code was", traps=True),
    Program("states.no_time_stamps", "@/states no_time_stamps", "rdtsc faults"),
    Program("states.steps_itself", "@/states steps_itself", "a program single-steps itself by the trap flag"),
    Program("states.user_dispatch", "@/states user_dispatch", "system calls are handed to the program itself", says="handed to itself"),
    Program("states.restartable", "@/states restartable", "restartable sequences lose nothing"),
    Program("states.raw_burners", "@/states raw_burners", "busy threads without thread-local storage and stack"),

    # ---- limits of resources, of the program and of what records it ----------------------------------------------
    *(Program(f"limits.{name}", f"{LIMITS} @/children busy 5 0.3'", f"{proves}; the program finds all its limits as given",
              around=f"env -i PATH=/usr/bin:/bin prlimit {limit}", own_user=True, **more)
      for name, limit, proves, more in (
          ("files_100000", "--fsize=102400000", "files of less than 100 MB", {}),
          ("files_600", "--fsize=614400", "files of less than the records of usual need", {}),
          ("files_none", "--fsize=0", "no file can be written", UNRECORDED),
          ("stack_64", "--stack=65536", "a stack of 64 KiB", {}),
          ("stack_16", "--stack=16384", "a stack of 16 KiB", {"says": "has no room for a library"}),
          ("cpu_time", "--cpu=1", "a second of CPU time", {}),
          ("descriptors_24", "--nofile=24", "24 descriptors", {}),
          ("descriptors_8", "--nofile=8", "8 descriptors", UNRECORDED),
          ("memory_100000", "--as=102400000", "100 MB of address space", {"samples": False}),
          ("memory_50000", "--as=51200000", "50 MB of address space", {"says": "has no room for a library"}),
          ("memory_20000", "--as=20480000", "20 MB of address space", UNRECORDED),
          ("data_10000", "--data=10240000", "10 MB of data", {"samples": False, "profile": False}),
          ("locked_memory", "--memlock=0", "no locked memory", {}),
          ("resident_memory", "--rss=0", "no resident memory, which nobody enforces", {}),
          ("core_files", "--core=0", "no core files", {}),
          ("queues", "--msgqueue=0", "no message queues", {}),
          ("priorities", "--nice=0 --rtprio=0", "no better priorities", {}),
          ("real_time", "--rttime=0", "no real-time CPU time", {"says": "allows no timer"}),
          ("signals", "--sigpending=0", "no pending signals", {}))),
    Program("limits.processes", "sh -c 'ulimit -Sa; ulimit -Ha; exit 5'", "one process", around="prlimit --nproc=1", own_user=True, **UNRECORDED),
    Program("limits.in_a_script", "sh -c 'ulimit -s 32; ulimit -f 1; ulimit -n 6; sh -c \"exit 3\"; echo $?'", "limits that a script sets for its commands",
            samples=False, says="are too low for our library; raise them"),

    # ---- marked regions -------------------------------------------------------------------------------------
    Program("marks.in_handlers", "@/marks in_handlers", "regions are marked in signal handlers that interrupt marks; errno stays"),
    Program("marks.in_threads", "@/marks in_threads", "threads end within regions, and jump out of them"),
    Program("marks.in_a_sandbox", "@/marks in_a_sandbox", "a first mark is made where system calls kill"),
    Program("marks.in_children", "@/marks in_children", "children of vfork and of raw fork mark regions"),
]


# The part of the catalogue that `./dev test` runs; `./dev verify hostile` runs the rest: programs of each group, first
# those that have found most defects.
CHOSEN_WITHIN = (
    "timers.own_timers", "timers.churn", "signals.handlers", "signals.masks", "signals.queue", "seccomp.alone_prctl",
    "seccomp.together_tsync", "interrupted_calls.system_calls", "interrupted_calls.short_futex",
    "stacks.faults_on_alternate_8192", "stacks.handler_by_system_call", "states.rewrites_code", "threads.cancelled",
    "threads.registers", "marks.in_threads",
)
CHOSEN_AROUND = (
    "attached.handlers_outside", "attached.handlers_inject", "attached.exec_inject", "memory.truncated_file",
    "memory.small_stack", "descriptors.close_all_loop", "descriptors.chosen_numbers", "children.exec_from_a_thread",
    "children.kill_recorder", "children.environment", "children.small_static", "children.terminal_interrupt",
    "limits.files_600", "limits.files_none", "limits.stack_16", "limits.descriptors_8", "limits.in_a_script",
    "namespaces.pid", "libraries.come_and_go", "openmp.own_tool",
)


def groups():
    return sorted({program.name.split(".")[0] for program in CATALOGUE})
