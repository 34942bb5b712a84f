----------------------------- MODULE LeaseTrace -----------------------------
(* A recorded run as a behavior of Lease: each line of Trace must be a step that Lease allows. The
   lines are those of package steps, in the order of their effects (lease_trace.go); README.md maps
   them to actions. A line that no action explains ends the behavior, and so does a step after which
   a rule does not hold. *)
EXTENDS Lease, Integers

CONSTANT Trace

VARIABLES
  at,    \* the next line
  asked  \* the leases with a request to rewind

Holds(rule, holds) == IF holds THEN TRUE ELSE PrintT(<<"violates", rule>>) /\ FALSE

(* Time passes on the clocks of each host. Lease counts ticks, a recording has the readings of both
   clocks in microseconds. A wall clock can also be set back. *)
Pass(f, d) == IF f.left <= d[1] THEN Passed ELSE [f EXCEPT !.left = @ - d[1], !.wall = @ - d[2]]
PassWorker(w, d) == IF ~w.on THEN w ELSE LET f == Pass(w.fence, d) IN IF f.left = 0 THEN Off ELSE [w EXCEPT !.fence = f]
Elapse(d) ==
  /\ worker' = [h \in Hosts |-> IF h \in DOMAIN d THEN [l \in Leases |-> PassWorker(worker[h][l], d[h])] ELSE worker[h]]
  /\ req' = [h \in Hosts |-> IF h \in DOMAIN d THEN [l \in Leases |-> IF req[h][l].kind = "none" THEN NoReq ELSE [req[h][l] EXCEPT !.fence = Pass(@, d[h])]] ELSE req[h]]
  /\ age' = [h \in Hosts |-> IF h \in DOMAIN d THEN [l \in Leases |-> IF cur[h][l] /\ age[h][l] < Expiry THEN age[h][l] + d[h][1] ELSE age[h][l]] ELSE age[h]]
  /\ UNCHANGED <<rec, cur, task, running, unreadable, done, faults>>

(* One listing has many leases; those with a new ETag are seen for the first time. *)
Lists(h, seen) ==
  /\ cur' = [cur EXCEPT ![h] = [l \in Leases |-> @[l] \/ l \in seen]]
  /\ age' = [age EXCEPT ![h] = [l \in Leases |-> IF l \in seen /\ ~cur[h][l] THEN 0 ELSE @[l]]]
  /\ UNCHANGED <<rec, worker, req, task, running, unreadable, done, faults>>

(* The delivery of a change has three lines: the check, the end of the delivery, and the position of
   the next write. Changes of different keys are delivered in any order. *)
Alone(h, l) == \A g \in Hosts, m \in Leases : <<g, m>> # <<h, l>> /\ Trusts(g, m) => ~Overlap(l, m)
Check(h, l) ==
  /\ Holds("OneOwner: the host does not trust its lease", May(h, l)) /\ Holds("OneOwner", Alone(h, l))
  /\ UNCHANGED vars
Of(key) == {i \in 1..N : Log[i] = key}
Sorts == [key \in {Log[i] : i \in 1..N} |-> Of(key)]
Ordered(q) == \A n \in DOMAIN q : q[n] > 0 =>
  \A j \in Sorts[Log[q[n]]] : j < q[n] => j \in done \/ \E m \in 1..(n - 1) : q[m] \in {j, -j}
Deliveries(q) == \* changes, in order; -i is a change that a later version replaces, so that nobody can read it
  /\ Holds("KeyOrder", Ordered(q))
  /\ done' = done \cup {IF q[n] > 0 THEN q[n] ELSE -q[n] : n \in DOMAIN q}
  /\ UNCHANGED <<rec, cur, age, worker, req, task, running, unreadable, faults>>
Position(h, l, pos) ==
  LET from == worker[h][l].at IN
  /\ IF pos < from THEN Holds("CheckpointSafe: moved back without a request", l \in asked)
     ELSE Holds("CheckpointSafe", \A j \in (from + 1)..pos : Log[j] \in Range[l] => j \in done)
  /\ worker' = [worker EXCEPT ![h][l].at = pos]
  /\ UNCHANGED <<rec, cur, age, req, task, running, unreadable, done, faults>>
Rewound(l) == \* an acquisition applies a request to rewind
  /\ l \in asked /\ rec' = [rec EXCEPT ![l].pos = 0]
  /\ UNCHANGED <<cur, age, worker, req, task, running, unreadable, done, faults>>

(* The window of a recording is up to two microseconds longer than that of the host, because readings
   are rounded. A host whose trust has just ended can acquire the lease again at that moment. A worker that has
   stopped can do so, too, if its last write had no effect: Finish and Drop of Lease. *)
Ends(h, l, stopped) ==
  /\ worker' = IF worker[h][l].on /\ (stopped \/ worker[h][l].fence.left <= 2) THEN [worker EXCEPT ![h][l] = Off] ELSE worker
  /\ UNCHANGED <<rec, cur, age, req, task, running, unreadable, done, faults>>
Acquires(h, l) ==
  /\ Holds("Idle: the host owns it already", Idle(h, l)) /\ Holds("the host has not listed this version", cur[h][l])
  /\ Holds("Free: its owner may trust it still", Free(h, l)) /\ Acquire(h, l)

Adopt(h, l) == \* after a refused write: Renew and Refuse of Lease in one step
  /\ worker' = IF worker[h][l].on /\ rec[l].state = "live" /\ rec[l].owner = h THEN [worker EXCEPT ![h][l].ok = TRUE] ELSE worker
  /\ UNCHANGED <<rec, cur, age, req, task, running, unreadable, done, faults>>

Answered(h, l) == Answer(h, l) /\ Holds("OneOwner", Trusts(h, l)' => Alone(h, l)')

Line(x) ==
  CASE x[1] = "time" -> Elapse(x[2])
    [] x[1] = "list" -> Lists(x[2], x[3])
    [] x[1] = "init" -> RetireAtOnce(First)
    [] x[1] = "ends" -> Ends(x[2], x[3], x[4])
    [] x[1] = "acquire" -> Acquires(x[2], x[3])
    [] x[1] = "position" -> Position(x[2], x[3], x[4])
    [] x[1] = "rewound" -> Rewound(x[2])
    [] x[1] = "renew" -> Holds("Owns: the host does not trust the lease any more", Owns(x[2], x[3])) /\ Rewrite(x[2], x[3])
    [] x[1] = "release" -> Finish(x[2], x[3], "release")
    [] x[1] = "retire" -> Retire(x[2], x[3])
    [] x[1] = "apply" -> Apply(x[2], x[3])
    [] x[1] = "answer" -> Answered(x[2], x[3])
    [] x[1] = "drop" -> IF req[x[2]][x[3]].kind = "none" THEN UNCHANGED vars ELSE Drop(x[2], x[3])
    [] x[1] = "adopt" -> Adopt(x[2], x[3])
    [] x[1] = "check" -> Check(x[2], x[3])
    [] x[1] = "done" -> Deliveries(x[2])
    [] x[1] = "operator" -> Operator(x[2])
    [] x[1] = "unreadable" -> FeedSplits(x[2])
    [] x[1] = "begin" -> Begin(x[2], x[3])
    [] x[1] = "create" -> CreateChild(x[2], x[3])
    [] x[1] = "barrier" -> Barrier(x[2]) /\ task'[x[2]].step = "activate"
    [] x[1] = "activate" -> Activate(x[2]) /\ rec[x[3]].state = "pending" /\ rec'[x[3]].state = "live" /\ rec'[x[3]].pos = x[4] /\ Holds("Tiled", Tiled')
    [] x[1] = "complete" -> Complete(x[2]) /\ rec'[task[x[2]].lease].state = "done" /\ Holds("Covered", Covered')
    [] x[1] = "sweep" -> Sweep(x[2])
    [] x[1] \in {"abandon", "crash"} -> Crash(x[2])
    [] OTHER -> x[1] = "asks" /\ UNCHANGED vars

TraceInit == Start({First}) /\ at = 1 /\ asked = {}
TraceNext ==
  /\ at <= Len(Trace)
  /\ \E x \in {Trace[at]} : \* a value, which a prime does not change
     /\ PrintT(<<1, at>>) /\ Line(x)
     /\ asked' = IF x[1] # "asks" THEN asked ELSE IF x[3] THEN asked \cup {x[2]} ELSE asked \ {x[2]}
  /\ at' = at + 1
  /\ at = Len(Trace) => PrintT(<<"explained", 1>>)
Explained == TraceInit /\ [][TraceNext]_<<vars, at, asked>>
=============================================================================
