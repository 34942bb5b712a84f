------------------------------- MODULE Relay -------------------------------
(* From the log of a container to the broker (packages application/relay and changefeed): the
   session of an owner, its checkpoint, sends, the breaker with its probe, gates with progress,
   the drainer, and an operator. The container can be restored, created again or fail over.
   README.md explains it. One feed range; who owns it is the subject of Lease.

   An event is a number. Numbers rise in the order of commits and in a transaction by ordinal. *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Txs,        \* the transactions in the order of their commits: sequences of events
  Key,        \* [events -> keys]
  Poison,     \* events that the broker refuses until an operator mends them
  MinFailing, \* failing keys after which sending is paused
  MaxSends,   \* sends that fail: partly, with a lost answer, late, or by a panic
  MaxCrashes, MaxCuts, MaxRestarts, MaxSkips,
  MaxDrops,   \* losses of all leases
  Cuts,       \* a subset of {"failover", "restore", "recreate"}
  Noticed,    \* assumption: a container that lost changes is read, or its leases are restarted,
              \* before it has grown again to the old position
  InWindow    \* assumption: an event arrives again only within the duplicate window

VARIABLES
  log,        \* transactions by LSN
  next,       \* the next transaction
  inc,        \* the incarnation of the container
  lease,      \* the record: checkpoint, reached, term, lost, history, and the incarnation
  s,          \* the session of the owner, in memory
  br,         \* the breaker, in memory
  gate,       \* by key, in the store
  got,        \* events in the order of their first arrival, or of all after the window
  late,       \* a send that has not arrived yet
  skipped,    \* events that an operator skipped
  direct,     \* an event was sent past a closed gate
  mended, used

vars == <<log, next, inc, lease, s, br, gate, got, late, skipped, direct, mended, used>>

Events == DOMAIN Key
Keys == {Key[e] : e \in Events}
Elems(q) == {q[i] : i \in DOMAIN q}
TxOf(e) == CHOOSE n \in DOMAIN Txs : e \in Elems(Txs[n])
InLog == UNION {Elems(Txs[log[i]]) : i \in DOMAIN log}
Lsn(e) == CHOOSE i \in DOMAIN log : e \in Elems(Txs[log[i]])
None == 0
Max(a, b) == IF a > b THEN a ELSE b

RECURSIVE Sorted(_)
Sorted(S) == IF S = {} THEN <<>> ELSE LET m == CHOOSE x \in S : \A y \in S : x <= y IN <<m>> \o Sorted(S \ {m})

NoProgress == [history |-> 0, lsn |-> 0, event |-> 0, at |-> 0]
Open == [closed |-> FALSE, auto |-> FALSE, intent |-> "none", parked |-> <<>>, progress |-> NoProgress,
         gone |-> {}] \* gone is not in the code: what left the gate
NoSession == [on |-> FALSE, read |-> 0, reached |-> 0, handled |-> {}, known |-> {}, ahead |-> FALSE, idle |-> FALSE]
Calm == [failing |-> {}, refused |-> {}, blamed |-> {}, paused |-> FALSE, probe |-> "none"]
NewLease(h) == [at |-> 0, reached |-> 0, term |-> None, lost |-> FALSE, history |-> h, inc |-> inc.number]

InitFrom(tx) ==
  /\ log = <<>> /\ next = tx /\ inc = [number |-> 1, term |-> 1]
  /\ lease = [at |-> 0, reached |-> 0, term |-> None, lost |-> FALSE, history |-> 1, inc |-> 1]
  /\ s = NoSession /\ br = Calm
  /\ gate = [k \in Keys |-> Open]
  /\ got = <<>> /\ late = <<>> /\ skipped = {} /\ direct = FALSE /\ mended = FALSE
  /\ used = [send |-> 0, crash |-> 0, cut |-> 0, restart |-> 0, skip |-> 0, drop |-> 0]

Init == InitFrom(1)

Use(kind, max) == used[kind] < max /\ used' = [used EXCEPT ![kind] = @ + 1]

(* The container. *)
Commit ==
  /\ next <= Len(Txs)
  /\ Noticed /\ lease.inc # inc.number /\ ~lease.lost => Len(log) + 1 < lease.reached
  /\ log' = Append(log, next) /\ next' = next + 1 /\ s' = [s EXCEPT !.idle = FALSE]
  /\ UNCHANGED <<inc, lease, br, gate, got, late, skipped, direct, mended, used>>

(* A failover or restore loses a suffix of the log. The leases are another container, so they
   may lose their last writes independently. *)
Cut(n, back) ==
  /\ Use("cut", MaxCuts) /\ n < Len(log)
  /\ log' = SubSeq(log, 1, n)
  /\ \E kind \in Cuts \ {"recreate"} : inc' = [number |-> inc.number + 1, term |-> inc.term + IF kind = "failover" THEN 1 ELSE 0]
  /\ lease' = IF back < lease.at THEN [lease EXCEPT !.at = back, !.reached = back] ELSE lease
  /\ s' = IF back < lease.at THEN NoSession ELSE [s EXCEPT !.idle = FALSE]
  /\ br' = IF back < lease.at THEN Calm ELSE br
  /\ UNCHANGED <<next, gate, got, late, skipped, direct, mended>>

Recreate == \* lister.checkSource: a new run with new leases
  /\ "recreate" \in Cuts /\ Use("cut", MaxCuts)
  /\ log' = <<>> /\ inc' = [number |-> inc.number + 1, term |-> inc.term]
  /\ lease' = [NewLease(lease.history + 1) EXCEPT !.inc = inc.number + 1]
  /\ s' = NoSession /\ br' = Calm
  /\ UNCHANGED <<next, gate, got, late, skipped, direct, mended>>

DropLeases == \* gaps.fill: a host continues from the lease that it remembers
  /\ Use("drop", MaxDrops) /\ s.on
  /\ lease' = lease
  /\ s' = NoSession /\ br' = Calm
  /\ UNCHANGED <<log, next, inc, gate, got, late, skipped, direct, mended>>

(* The session. *)
Start == \* memory.register: the closed gates are listed after the acquisition
  /\ ~s.on
  /\ s' = [on |-> TRUE, read |-> lease.at, reached |-> lease.reached, handled |-> {},
           known |-> {k \in Keys : gate[k].closed}, ahead |-> FALSE, idle |-> FALSE]
  /\ UNCHANGED <<log, next, inc, lease, br, gate, got, late, skipped, direct, mended, used>>

Crash ==
  /\ s.on /\ Use("crash", MaxCrashes) /\ s' = NoSession /\ br' = Calm
  /\ UNCHANGED <<log, next, inc, lease, gate, got, late, skipped, direct, mended>>

Read(to) == \* delivery.readPage
  /\ s.on /\ ~lease.lost /\ to \in s.read..Max(s.read, Len(log))
  /\ IF Len(log) < s.reached
       THEN /\ ~s.ahead
            /\ s' = [s EXCEPT !.ahead = TRUE]
            /\ lease' = [lease EXCEPT !.lost = lease.term # None /\ lease.term # inc.term]
       ELSE /\ s' = [s EXCEPT !.read = to, !.reached = Max(@, to), !.ahead = FALSE, !.idle = to >= Len(log)]
            /\ lease' = [lease EXCEPT !.term = inc.term, !.inc = inc.number]
            /\ s' # s \/ lease' # lease
  /\ UNCHANGED <<log, next, inc, br, gate, got, late, skipped, direct, mended, used>>

PendingOf(k) == {e \in InLog : Key[e] = k /\ Lsn(e) > lease.at /\ Lsn(e) <= s.read /\ e \notin s.handled}
Pending(k) == Sorted(PendingOf(k)) \* page.sort: by LSN, in a transaction by ordinal

Checkpoint == \* window: the low-water page, and keeper.write
  /\ s.on /\ \E to \in (lease.at + 1)..s.read :
       /\ \A e \in InLog : Lsn(e) > lease.at /\ Lsn(e) <= to => e \in s.handled
       /\ lease' = [lease EXCEPT !.at = to, !.reached = s.reached]
       /\ s' = [s EXCEPT !.handled = {e \in @ : e \in InLog /\ Lsn(e) > to}]
  /\ UNCHANGED <<log, next, inc, br, gate, got, late, skipped, direct, mended, used>>

(* The broker drops what it knows; after the window it knows nothing. *)
RECURSIVE Arrive(_, _)
Arrive(q, msgs) == IF msgs = <<>> THEN q
  ELSE Arrive(IF Head(msgs) \in Elems(q) THEN q ELSE Append(q, Head(msgs)), Tail(msgs))
Refuses(e) == e \in Poison /\ ~mended

Succeed(k) == \* breaker.record of a send with an accepted message
  [br EXCEPT !.failing = {}, !.paused = FALSE, !.probe = "none", !.refused = @ \ {k}, !.blamed = (@ \cup br.failing) \ {k}]
Refused(k) == \* for certain, so it says nothing about the broker
  [br EXCEPT !.probe = "none", !.refused = @ \cup {k}, !.failing = @ \ {k}]
Fail(k) ==
  LET failing == br.failing \cup {k}
  IN [br EXCEPT !.failing = failing, !.paused = @ \/ Cardinality(failing) >= MinFailing, !.probe = "none", !.refused = @ \ {k}]
Admitted(k) == ~br.paused \/ br.probe = k

Probe(k) == \* breaker.admit
  /\ s.on /\ br.paused /\ br.probe = "none" /\ k \notin s.known /\ Pending(k) # <<>>
  /\ br' = [br EXCEPT !.probe = k]
  /\ UNCHANGED <<log, next, inc, lease, s, gate, got, late, skipped, direct, mended, used>>

Publish(k) ==
  /\ s.on /\ k \notin s.known /\ Pending(k) # <<>> /\ Admitted(k)
  /\ LET msgs == Pending(k)
         good == SelectSeq(msgs, LAMBDA e : \A f \in Elems(msgs) : Refuses(f) => e < f) IN
     /\ direct' = (direct \/ gate[k].closed)
     /\ \/ /\ got' = Arrive(got, good) /\ UNCHANGED <<late, used>>
           /\ s' = [s EXCEPT !.handled = @ \cup Elems(good)]
           /\ br' = IF good = msgs THEN Succeed(k) ELSE IF good = <<>> THEN Refused(k) ELSE [Succeed(k) EXCEPT !.refused = @ \cup {k}]
        \/ \E n \in 0..Len(good) : \* n arrive, and their answer is lost
           /\ Use("send", MaxSends) /\ got' = Arrive(got, SubSeq(good, 1, n)) /\ UNCHANGED <<late, s>>
           /\ br' = Fail(k)
        \/ /\ Use("send", MaxSends) /\ late = <<>> /\ late' = good /\ UNCHANGED <<got, s>>
           /\ br' = Fail(k)
  /\ UNCHANGED <<log, next, inc, lease, gate, skipped, mended>>

Panic(k) == \* in a send: sendProbe ends the probe by a deferred call
  /\ br.probe = k /\ Use("send", MaxSends) /\ br' = [Fail(k) EXCEPT !.probe = "none"]
  /\ UNCHANGED <<log, next, inc, lease, s, gate, got, late, skipped, direct, mended>>

Late == \* a frozen sender continues
  /\ late # <<>> /\ late' = <<>>
  /\ got' = IF InWindow THEN Arrive(got, late) ELSE got \o late
  /\ UNCHANGED <<log, next, inc, lease, s, br, gate, skipped, direct, mended, used>>

(* Gates. *)
Place(e) == [history |-> lease.history, lsn |-> Lsn(e), event |-> e, at |-> TxOf(e)]
Covers(p, e) ==
  /\ p.lsn > 0 /\ p.history = lease.history /\ ~(TxOf(e) > p.at)
  /\ p.lsn > Lsn(e) \/ (p.lsn = Lsn(e) /\ p.event >= e)
Admit(g, e) == IF Covers(g.progress, e) THEN g
  ELSE [g EXCEPT !.progress = Place(e), !.parked = IF e \in Elems(@) THEN @ ELSE Append(@, e)]
RECURSIVE AdmitAll(_, _)
AdmitAll(g, q) == IF q = <<>> THEN g ELSE AdmitAll(Admit(g, Head(q)), Tail(q))

Park(k, answered) == \* Relay.Park of the first event: refused too often, or blamed for too long
  /\ s.on /\ k \notin s.known /\ Pending(k) # <<>>
  /\ k \in br.refused \/ (k \in br.blamed /\ k \in br.failing /\ ~br.paused)
  /\ LET e == Head(Pending(k)) g == gate[k] IN
     /\ gate' = [gate EXCEPT ![k] = Admit(IF g.closed THEN g ELSE [Open EXCEPT !.closed = TRUE, !.auto = k \notin br.refused], e)]
     /\ s' = [s EXCEPT !.known = @ \cup {k}, !.handled = IF answered THEN @ \cup {e} ELSE @]
     /\ br' = [br EXCEPT !.failing = @ \ {k}, !.refused = @ \ {k}, !.blamed = @ \ {k}]
  /\ UNCHANGED <<log, next, inc, lease, got, late, skipped, direct, mended>>
Parks(k) == Park(k, TRUE) /\ UNCHANGED used
ParkAnswerLost(k) == Park(k, FALSE) /\ Use("send", MaxSends)

Followers(k) == \* Relay.parkFollowers
  /\ s.on /\ k \in s.known /\ Pending(k) # <<>>
  /\ IF gate[k].closed
       THEN /\ gate' = [gate EXCEPT ![k] = AdmitAll(@, Pending(k))]
            /\ s' = [s EXCEPT !.handled = @ \cup Elems(Pending(k))]
       ELSE s' = [s EXCEPT !.known = @ \ {k}] /\ UNCHANGED gate
  /\ UNCHANGED <<log, next, inc, lease, br, got, late, skipped, direct, mended, used>>

Intent(g) == IF g.intent = "none" /\ g.auto THEN "retry" ELSE g.intent
Drain(k, removed) == \* the owner's drainer sends the first event, or skips it
  /\ s.on /\ gate[k].closed /\ Intent(gate[k]) # "none" /\ gate[k].parked # <<>> /\ ~br.paused
  /\ LET g == gate[k] e == Head(g.parked) rest == [g EXCEPT !.parked = Tail(@), !.gone = @ \cup {e}] IN
     CASE Intent(g) = "skip" ->
            /\ gate' = [gate EXCEPT ![k] = [rest EXCEPT !.intent = "retry"]]
            /\ skipped' = skipped \cup {e} /\ UNCHANGED got
       [] Intent(g) = "retry" /\ Refuses(e) ->
            /\ gate' = [gate EXCEPT ![k].intent = "none", ![k].auto = FALSE] /\ UNCHANGED <<got, skipped>>
       [] OTHER ->
            /\ got' = Arrive(got, <<e>>) /\ UNCHANGED skipped
            /\ gate' = IF removed THEN [gate EXCEPT ![k] = rest] ELSE gate
  /\ UNCHANGED <<log, next, inc, lease, s, br, late, direct, mended>>
Drains(k) == Drain(k, TRUE) /\ UNCHANGED used
DrainInterrupted(k) == Drain(k, FALSE) /\ Use("send", MaxSends)

OpenGate(k) ==
  /\ s.on /\ gate[k].closed /\ gate[k].parked = <<>> /\ Intent(gate[k]) # "none"
  /\ gate' = [gate EXCEPT ![k] = Open]
  /\ UNCHANGED <<log, next, inc, lease, s, br, got, late, skipped, direct, mended, used>>

(* The operator. *)
Mend(k) ==
  /\ gate[k].closed /\ ~gate[k].auto /\ gate[k].intent = "none"
  /\ mended' = TRUE /\ gate' = [gate EXCEPT ![k].intent = "retry"]
  /\ UNCHANGED <<log, next, inc, lease, s, br, got, late, skipped, direct, used>>
Skip(k) ==
  /\ Use("skip", MaxSkips) /\ gate[k].closed /\ gate[k].intent = "none" /\ gate[k].parked # <<>>
  /\ gate' = [gate EXCEPT ![k].intent = "skip"]
  /\ UNCHANGED <<log, next, inc, lease, s, br, got, late, skipped, direct, mended>>
Restart ==
  /\ lease' = NewLease(lease.history + 1) /\ s' = NoSession /\ br' = Calm
  /\ UNCHANGED <<log, next, inc, gate, got, late, skipped, direct, mended>>
RestartAtWill == Restart /\ Use("restart", MaxRestarts)
RestartIfHeld == (lease.lost \/ s.ahead) /\ Restart /\ UNCHANGED used

Work(k) == Publish(k) \/ Parks(k) \/ Followers(k) \/ Drains(k) \/ OpenGate(k) \/ Probe(k)
Next ==
  \/ Commit \/ Recreate \/ DropLeases \/ Start \/ Crash \/ Checkpoint \/ Late \/ RestartAtWill \/ RestartIfHeld
  \/ \E n \in 0..Len(Txs) : Read(n) \/ \E back \in 0..lease.at : Cut(n, back)
  \/ \E k \in Keys : Work(k) \/ Panic(k) \/ ParkAnswerLost(k) \/ DrainInterrupted(k) \/ Mend(k) \/ Skip(k)

Spec == Init /\ [][Next]_vars
Fair ==
  /\ Spec
  /\ WF_vars(Commit) /\ WF_vars(Start) /\ WF_vars(RestartIfHeld) /\ WF_vars(\E n \in 0..Len(Txs) : n > s.read /\ Read(n))
  /\ WF_vars(Read(s.read))
  /\ \A k \in Keys : WF_vars(Publish(k)) /\ SF_vars(Parks(k)) /\ WF_vars(Followers(k)) /\ WF_vars(Drains(k)) /\ WF_vars(OpenGate(k)) /\ WF_vars(Probe(k)) /\ WF_vars(Mend(k))

----------------------------------------------------------------------------
Parked(e) == e \in Elems(gate[Key[e]].parked)
Safe(e) == e \in Elems(got) \/ Parked(e) \/ e \in skipped
At(e) == CHOOSE i \in DOMAIN got : got[i] = e

(* A range that reports that it has read everything, or a checkpoint of this incarnation, has
   nothing before it that was lost. *)
NoSilentLoss == \A e \in InLog : lease.inc = inc.number /\ Lsn(e) <= lease.at => Safe(e)

(* Events of a key are first delivered in the order of the log. *)
KeyOrder == \A e, f \in InLog : Key[e] = Key[f] /\ e < f /\ f \in Elems(got) /\ e \notin skipped =>
  e \in Elems(got) /\ At(e) < At(f)

(* While a gate is closed, only the drainer sends. *)
OnlyDrainer == ~direct

(* What was skipped or sent by the drainer is not parked again behind the same gate, before a
   restart delivers everything again. *)
ParkedOnce == lease.history = 1 => \A k \in Keys : Elems(gate[k].parked) \cap gate[k].gone = {}

NoDuplicate == Cardinality(Elems(got)) = Len(got)

(* An outage of the broker alone parks nothing: a key is blamed only after another was accepted. *)
Evidence == \A k \in br.blamed : \E e \in Elems(got) : Key[e] # k

(* With fairness: every event is sent, parked or skipped, and a probe ends. *)
EverySent == <>[](\A e \in InLog : Safe(e))
ProbeEnds == \A k \in Keys : (br.probe = k) ~> (br.probe # k)
=============================================================================
