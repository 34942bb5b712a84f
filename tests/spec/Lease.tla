------------------------------- MODULE Lease -------------------------------
(* The protocol of leases (package changefeed): acquisition, the trust window, renewal with
   lost answers, release, and splits whose steps any host can complete. README.md explains it.

   An ETag is not a number here, so that the states are finite: a copy of a record is either
   current (its ETag is that of the store) or it is not, and every write of the record makes
   all other copies outdated. A conditional write is applied if its copy is current. *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
  Hosts,      \* a symmetry set
  Leases,     \* names of records
  First,      \* the lease that exists at the beginning
  Kids,       \* [Leases -> SUBSET Leases]: the children of a split
  Range,      \* [Leases -> SUBSET keys]
  Log,        \* the keys of the changes, in the order of the feed
  Expiry,     \* in ticks
  Margin,     \* how far clocks can drift apart within Expiry
  MaxFaults,  \* crashes, suspensions, and writes of operators and of a foreign processor
  Faults,     \* their kinds: a subset of {"crash", "suspend", "operator", "foreign"}
  Lossy,      \* requests and answers can be lost, and hosts can release leases
  Prompt      \* hosts that run renew in time; for liveness

VARIABLES
  rec,        \* the records in the store
  cur,        \* cur[h][l]: the listing of h has the current ETag of l
  age,        \* age[h][l]: for how long h has seen that ETag, on its own clock
  worker,     \* worker[h][l]: the worker and keeper of an owned lease
  req,        \* req[h][l]: a write of the record that is under way
  task,       \* task[h]: the split that h completes
  running,    \* the hosts that are not suspended
  unreadable, \* the leases whose range has split in the feed
  done,       \* the changes that were delivered
  faults

vars == <<rec, cur, age, worker, req, task, running, unreadable, done, faults>>

N == Len(Log)
Nobody == "nobody"
Foreign == "foreign"
Window == Expiry - Margin
Fresh == [left |-> Window, wall |-> Window, slack |-> Margin]
Passed == [left |-> 0, wall |-> 0, slack |-> 0]
Off == [on |-> FALSE, ok |-> FALSE, at |-> 0, fence |-> Passed]
NoReq == [kind |-> "none", ok |-> FALSE, pos |-> 0, fence |-> Passed]
NoTask == [lease |-> First, step |-> "none", ok |-> FALSE, todo |-> {}, found |-> {}, pos |-> 0]
Gone == [state |-> "none", owner |-> Nobody, taken |-> FALSE, pos |-> 0]
Parents(l) == {p \in Leases : l \in Kids[p]}
Overlap(l, m) == Range[l] \cap Range[m] # {}
Narrower(l) == {m \in Leases \ {l} : Range[m] \subseteq Range[l] /\ m \notin Parents(l)}

Start(split) == \* split: the leases whose range has split before the first one is read
  /\ rec = [l \in Leases |-> IF l = First THEN [Gone EXCEPT !.state = "live"] ELSE Gone]
  /\ cur = [h \in Hosts |-> [l \in Leases |-> FALSE]]
  /\ age = [h \in Hosts |-> [l \in Leases |-> 0]]
  /\ worker = [h \in Hosts |-> [l \in Leases |-> Off]]
  /\ req = [h \in Hosts |-> [l \in Leases |-> NoReq]]
  /\ task = [h \in Hosts |-> NoTask]
  /\ running = Hosts /\ unreadable = split /\ done = {} /\ faults = 0
Init == Start({})

(* A write of record l by h, which knows its new ETag if knows is TRUE. *)
Written(l) ==
  /\ cur' = [h \in Hosts |-> [cur[h] EXCEPT ![l] = FALSE]]
  /\ age' = [h \in Hosts |-> [age[h] EXCEPT ![l] = 0]]
Outdated(l, w) == [h \in Hosts |-> [w[h] EXCEPT ![l].ok = FALSE]]
TasksOutdated(l, t) == [h \in Hosts |-> [t[h] EXCEPT !.ok = @ /\ t[h].lease # l, !.found = {<<e[1], e[2] /\ e[1] # l>> : e \in @}]]

(* Listing: a stale answer of a replica changes nothing, so there is no action for it. *)
List(h, l) ==
  /\ h \in running /\ ~cur[h][l] /\ rec[l].state = "live"
  /\ cur' = [cur EXCEPT ![h][l] = TRUE]
  /\ age' = [age EXCEPT ![h][l] = 0]
  /\ UNCHANGED <<rec, worker, req, task, running, unreadable, done, faults>>

Idle(h, l) == h \in running /\ ~worker[h][l].on /\ req[h][l].kind = "none"

Free(h, l) == \* Lease.lifetime and membership.balanceLease
  \/ rec[l].owner = Nobody /\ ~rec[l].taken
  \/ rec[l].owner = h
  \/ age[h][l] >= Expiry

Replaced(l) == \E m \in Narrower(l) : rec[m].state = "live" \* tiling.replaced

Send(h, l, kind, pos, ok, f) == req' = [req EXCEPT ![h][l] = [kind |-> kind, ok |-> ok, pos |-> pos, fence |-> f]]

Acquire(h, l) ==
  /\ Idle(h, l) /\ cur[h][l] /\ rec[l].state = "live" /\ ~Replaced(l) /\ Free(h, l)
  /\ Send(h, l, "acquire", rec[l].pos, TRUE, Fresh)
  /\ UNCHANGED <<rec, cur, age, worker, task, running, unreadable, done, faults>>

Owns(h, l) == h \in running /\ worker[h][l].on /\ worker[h][l].fence.left > 0
May(h, l) == Owns(h, l) /\ worker[h][l].fence.wall > 0 \* fencedContext.Err

Rewrite(h, l) ==
  /\ Owns(h, l) /\ req[h][l].kind = "none"
  /\ Send(h, l, "renew", worker[h][l].at, worker[h][l].ok, Fresh)
  /\ UNCHANGED <<rec, cur, age, worker, task, running, unreadable, done, faults>>
Renew(h, l) ==
  /\ ~worker[h][l].ok \/ worker[h][l].fence # Fresh \/ worker[h][l].at # rec[l].pos
  /\ Rewrite(h, l)

Deliver(h, l) ==
  /\ May(h, l) /\ l \notin unreadable /\ worker[h][l].at < N
  /\ worker' = [worker EXCEPT ![h][l].at = @ + 1]
  /\ done' = IF Log[worker[h][l].at + 1] \in Range[l] THEN done \cup {worker[h][l].at + 1} ELSE done
  /\ UNCHANGED <<rec, cur, age, req, task, running, unreadable, faults>>

Finish(h, l, kind) == \* keeper.finish: the worker has stopped, and writes the record a last time
  /\ Owns(h, l) /\ req[h][l].kind = "none"
  /\ Send(h, l, kind, worker[h][l].at, worker[h][l].ok, Passed)
  /\ worker' = [worker EXCEPT ![h][l] = Off]
  /\ UNCHANGED <<rec, cur, age, task, running, unreadable, done, faults>>
Release(h, l) == Lossy /\ Finish(h, l, "release")
Retire(h, l) == l \in unreadable /\ Finish(h, l, "retire")

(* The store applies a write whose ETag is current. The answer arrives later, or is lost. *)
Answers == [acquire |-> "acquired", renew |-> "renewed", retire |-> "retired"]
Apply(h, l) ==
  LET q == req[h][l] IN
  /\ q.kind \in {"acquire", "renew", "release", "retire"} /\ q.ok /\ rec[l].state = "live"
  /\ Written(l)
  /\ req' = [Outdated(l, req) EXCEPT ![h][l] = IF q.kind = "release" THEN NoReq ELSE [q EXCEPT !.kind = Answers[@]]]
  /\ rec' = [rec EXCEPT ![l] =
       [state |-> IF q.kind = "retire" THEN "split" ELSE "live",
        owner |-> IF q.kind \in {"release", "retire"} THEN Nobody ELSE h,
        taken |-> FALSE, pos |-> q.pos]]
  /\ worker' = Outdated(l, worker) /\ task' = TasksOutdated(l, task)
  /\ UNCHANGED <<running, unreadable, done, faults>>

Answer(h, l) ==
  LET q == req[h][l] w == worker[h][l] IN
  /\ q.kind \in {"acquired", "renewed", "retired"}
  /\ req' = [req EXCEPT ![h][l] = NoReq]
  /\ worker' = [worker EXCEPT ![h][l] =
       CASE q.kind = "acquired" /\ q.fence.left > 0 -> [on |-> TRUE, ok |-> q.ok, at |-> q.pos, fence |-> q.fence]
         [] q.kind = "renewed" /\ w.on /\ q.fence.left > 0 -> [w EXCEPT !.ok = q.ok, !.fence = q.fence]
         [] OTHER -> w]
  /\ task' = IF q.kind = "retired" /\ task[h].step = "none"
               THEN [task EXCEPT ![h] = [lease |-> l, step |-> "create", ok |-> q.ok, todo |-> Kids[l], found |-> {}, pos |-> q.pos]]
               ELSE task
  /\ UNCHANGED <<rec, cur, age, running, unreadable, done, faults>>

(* A refused write: the keeper reads the record and adopts it, or has lost it. *)
Refuse(h, l) ==
  LET q == req[h][l] IN
  /\ q.kind \in {"acquire", "renew", "release", "retire"} /\ ~(q.ok /\ rec[l].state = "live")
  /\ req' = [req EXCEPT ![h][l] = NoReq]
  /\ worker' = IF q.kind # "renew" \/ ~worker[h][l].on THEN worker
               ELSE IF rec[l].state = "live" /\ rec[l].owner = h
                 THEN [worker EXCEPT ![h][l].ok = TRUE]
                 ELSE [worker EXCEPT ![h][l] = Off]
  /\ UNCHANGED <<rec, cur, age, task, running, unreadable, done, faults>>

Drop(h, l) == \* the request or its answer is lost
  /\ Lossy /\ req[h][l].kind # "none"
  /\ req' = [req EXCEPT ![h][l] = NoReq]
  /\ UNCHANGED <<rec, cur, age, worker, task, running, unreadable, done, faults>>

(* Splits: any host completes one, from any step. *)
Begin(h, l) ==
  /\ h \in running /\ task[h].step = "none" /\ rec[l].state = "split"
  /\ task' = [task EXCEPT ![h] = [lease |-> l, step |-> "create", ok |-> TRUE, todo |-> Kids[l], found |-> {}, pos |-> rec[l].pos]]
  /\ UNCHANGED <<rec, cur, age, worker, req, running, unreadable, done, faults>>

(* found has the children that were pending before the barrier, with TRUE while their ETags,
   which h read or wrote, are current. *)
CreateChild(h, c) ==
  /\ h \in running /\ task[h].step = "create" /\ c \in task[h].todo
  /\ rec' = IF rec[c].state # "none" THEN rec ELSE [rec EXCEPT ![c] = [Gone EXCEPT !.state = "pending", !.pos = task[h].pos]]
  /\ task' = [task EXCEPT ![h].todo = @ \ {c}, ![h].found = IF rec'[c].state = "pending" THEN @ \cup {<<c, TRUE>>} ELSE @]
  /\ UNCHANGED <<cur, age, worker, req, running, unreadable, done, faults>>

Create(h) == \E c \in task[h].todo : CreateChild(h, c)

Barrier(h) ==
  /\ h \in running /\ task[h].step = "create" /\ task[h].todo = {}
  /\ LET l == task[h].lease IN
     IF task[h].ok /\ rec[l].state = "split"
       THEN /\ Written(l)
            /\ task' = [TasksOutdated(l, task) EXCEPT ![h] = [task[h] EXCEPT !.step = "activate"]]
       ELSE task' = [task EXCEPT ![h] = NoTask] /\ UNCHANGED <<cur, age>>
  /\ UNCHANGED <<rec, worker, req, running, unreadable, done, faults>>

Activate(h) ==
  /\ h \in running /\ task[h].step = "activate"
  /\ \E e \in task[h].found :
       IF e[2]
         THEN /\ Written(e[1])
              /\ rec' = [rec EXCEPT ![e[1]].state = "live", ![e[1]].pos = task[h].pos]
              /\ task' = [TasksOutdated(e[1], task) EXCEPT ![h].found = task[h].found \ {e}]
         ELSE task' = [task EXCEPT ![h] = NoTask] /\ UNCHANGED <<rec, cur, age>>
  /\ UNCHANGED <<worker, req, running, unreadable, done, faults>>

Complete(h) ==
  /\ h \in running /\ task[h].step = "activate" /\ task[h].found = {}
  /\ LET l == task[h].lease IN
     IF task[h].ok /\ rec[l].state = "split"
       THEN /\ Written(l)
            /\ rec' = [rec EXCEPT ![l].state = "done"]
            /\ task' = [TasksOutdated(l, task) EXCEPT ![h] = NoTask]
       ELSE task' = [task EXCEPT ![h] = NoTask] /\ UNCHANGED <<rec, cur, age>>
  /\ UNCHANGED <<worker, req, running, unreadable, done, faults>>

Sweep(l) ==
  /\ running # {} /\ rec[l].state \in {"done", "pending"}
  /\ \A p \in Parents(l) : rec[p].state \in {"none", "done"}
  /\ rec' = [rec EXCEPT ![l] = Gone]
  /\ Written(l)
  /\ req' = Outdated(l, req) /\ worker' = Outdated(l, worker) /\ task' = TasksOutdated(l, task)
  /\ UNCHANGED <<running, unreadable, done, faults>>

(* The environment. *)
Fault(kind) == kind \in Faults /\ faults < MaxFaults /\ faults' = faults + 1

Crash(h) ==
  /\ Fault("crash")
  /\ worker' = [worker EXCEPT ![h] = [l \in Leases |-> Off]]
  /\ req' = [req EXCEPT ![h] = [l \in Leases |-> NoReq]]
  /\ task' = [task EXCEPT ![h] = NoTask]
  /\ cur' = [cur EXCEPT ![h] = [l \in Leases |-> FALSE]]
  /\ age' = [age EXCEPT ![h] = [l \in Leases |-> 0]]
  /\ running' = running \cup {h}
  /\ UNCHANGED <<rec, unreadable, done>>

Suspend(h) ==
  /\ h \in running /\ Fault("suspend") /\ running' = running \ {h}
  /\ UNCHANGED <<rec, cur, age, worker, req, task, unreadable, done>>
Wake(h) ==
  /\ h \notin running /\ running' = running \cup {h}
  /\ UNCHANGED <<rec, cur, age, worker, req, task, unreadable, done, faults>>

OtherWrite(l, kind, owner, taken) ==
  /\ rec[l].state = "live" /\ Fault(kind)
  /\ rec' = [rec EXCEPT ![l].owner = owner, ![l].taken = taken]
  /\ Written(l) /\ req' = Outdated(l, req) /\ worker' = Outdated(l, worker)
  /\ UNCHANGED <<task, running, unreadable, done>>
Operator(l) == OtherWrite(l, "operator", rec[l].owner, rec[l].taken)
ForeignTakes(l) == rec[l].owner # Foreign /\ OtherWrite(l, "foreign", Foreign, rec[l].taken \/ rec[l].owner # Nobody)
ForeignReleases(l) == rec[l].owner = Foreign /\ OtherWrite(l, "foreign", Nobody, rec[l].taken)

FeedSplits(l) ==
  /\ Kids[l] # {} /\ l \notin unreadable /\ Parents(l) \subseteq unreadable
  /\ unreadable' = unreadable \cup {l}
  /\ UNCHANGED <<rec, cur, age, worker, req, task, running, done, faults>>

(* A slow clock does not count a tick, at most Margin times within a window. While a host is
   suspended only its wall clock counts. *)
Count(f, up, slow) ==
  IF up /\ slow /\ f.slack > 0 THEN [f EXCEPT !.slack = @ - 1]
  ELSE IF up /\ f.left <= 1 THEN Passed
  ELSE [f EXCEPT !.left = IF up THEN @ - 1 ELSE @, !.wall = IF @ > 0 THEN @ - 1 ELSE 0]
CountWorker(w, up, slow) == \* fence.watch ends the ownership
  LET f == Count(w.fence, up, slow) IN IF f.left = 0 THEN Off ELSE [w EXCEPT !.fence = f]
InTime == \A h \in running, l \in Leases :
  /\ worker[h][l].on => worker[h][l].fence.left > 1
  /\ req[h][l].kind # "none" => req[h][l].fence.left > 1
Tick(slow) ==
  /\ Prompt => InTime
  /\ worker' = [h \in Hosts |-> [l \in Leases |-> CountWorker(worker[h][l], h \in running, h \in slow)]]
  /\ req' = [h \in Hosts |-> [l \in Leases |-> [req[h][l] EXCEPT !.fence = Count(@, h \in running, h \in slow)]]]
  /\ age' = [h \in Hosts |-> [l \in Leases |-> IF h \in running /\ cur[h][l] /\ age[h][l] < Expiry THEN age[h][l] + 1 ELSE age[h][l]]]
  /\ UNCHANGED <<rec, cur, task, running, unreadable, done, faults>>

Step(h, l) == Acquire(h, l) \/ Apply(h, l) \/ Answer(h, l) \/ Refuse(h, l) \/ Retire(h, l)
Split(h) == Create(h) \/ Barrier(h) \/ Activate(h) \/ Complete(h)
Next ==
  \/ \E h \in Hosts, l \in Leases : List(h, l) \/ Step(h, l) \/ Renew(h, l) \/ Deliver(h, l) \/ Release(h, l)
                                    \/ Drop(h, l) \/ Begin(h, l)
  \/ \E h \in Hosts : Split(h) \/ Crash(h) \/ Suspend(h) \/ Wake(h)
  \/ \E l \in Leases : Sweep(l) \/ Operator(l) \/ ForeignTakes(l) \/ ForeignReleases(l) \/ FeedSplits(l)
  \/ \E slow \in {{}} \cup IF Margin = 0 THEN {} ELSE {{h} : h \in Hosts} : Tick(slow)

Spec == Init /\ [][Next]_vars

(* The splits alone, for more hosts and leases: a lease that is live is retired at once. *)
RetireAtOnce(l) ==
  /\ rec[l].state = "live" /\ Kids[l] # {}
  /\ rec' = [rec EXCEPT ![l].state = "split"]
  /\ Written(l) /\ task' = TasksOutdated(l, task)
  /\ UNCHANGED <<worker, req, running, unreadable, done, faults>>
SplitsNext ==
  \/ \E h \in Hosts : Split(h) \/ Crash(h) \/ \E l \in Leases : Begin(h, l)
  \/ \E l \in Leases : Sweep(l) \/ RetireAtOnce(l)
Splits == Init /\ [][SplitsNext]_vars
Fair ==
  /\ Spec
  /\ \A h \in Hosts : WF_vars(Split(h)) /\ WF_vars(Wake(h))
  /\ \A h \in Hosts, l \in Leases : WF_vars(List(h, l)) /\ WF_vars(Step(h, l)) /\ SF_vars(Retire(h, l)) /\ SF_vars(Renew(h, l)) /\ SF_vars(Deliver(h, l)) /\ WF_vars(Begin(h, l))
  /\ WF_vars(Tick({}))

----------------------------------------------------------------------------
Trusts(h, l) == worker[h][l].on /\ worker[h][l].fence.left > 0 /\ worker[h][l].fence.wall > 0

(* No host begins a delivery once another host may have begun one for the same range. *)
OneOwner == \A h, g \in Hosts, l, m \in Leases :
  Trusts(h, l) /\ Trusts(g, m) /\ Overlap(l, m) => h = g /\ l = m

(* A checkpoint moves only past changes that were delivered. *)
CheckpointSafe == \A l \in Leases, i \in 1..N :
  rec[l].state # "none" /\ i <= rec[l].pos /\ Log[i] \in Range[l] => i \in done

(* The changes of one key are first delivered in the order of the feed. *)
KeyOrder == \A i \in done, j \in 1..N : j < i /\ Log[j] = Log[i] => j \in done

(* Live leases never overlap: a lease that was split and deleted does not return. *)
Tiled == \A l, m \in Leases : l # m /\ rec[l].state = "live" /\ rec[m].state = "live" => ~Overlap(l, m)

(* Every key always belongs to a lease that is live, or whose split any host can complete. *)
Covered == \A i \in 1..N : \E l \in Leases : Log[i] \in Range[l] /\ rec[l].state \in {"live", "split"}

(* With fairness: every change is delivered. *)
Delivered == <>(done = 1..N)
=============================================================================
