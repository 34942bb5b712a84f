----------------------------- MODULE RelayTrace -----------------------------
(* Recorded runs of relays as behaviors of Relay, one for each key: a key has its own gate, its
   events are in one lease at a time, and no rule relates the events of two keys. So the log has only
   the transactions of the key, and an LSN is the number of those up to it. Sends of other keys remain
   as evidence for the breaker. README.md maps the lines to actions. *)
EXTENDS Relay, Integers, TLC

CONSTANTS
  Traces, \* the lines of each behavior
  Of,     \* its key
  Begins  \* its first transaction

VARIABLES
  b,      \* the behavior
  at,     \* the next line
  owner,  \* the host whose session is s; "none"
  listed, \* it has listed the closed gates in this session
  ahead,  \* Lease.Ahead of the record: what is done after the checkpoint
  asked,  \* an operator has requested a rewind or a restart
  drawn,  \* by host: parked events that its drainer has read and not sent yet
  flight, \* sends that are under way
  brs,    \* by host: the breaker
  blame,  \* by host: its last failure blames the key
  turned  \* events that the broker has refused for certain
more == <<owner, listed, ahead, asked, drawn, flight, brs, blame, turned>>

K == Of[b]
Holds(rule, holds) == IF holds THEN TRUE ELSE PrintT(<<"violates", rule>>) /\ FALSE
IsPrefix(q, r) == Len(q) <= Len(r) /\ SubSeq(r, 1, Len(q)) = q
With(f, x, y) == [z \in DOMAIN f \cup {x} |-> IF z = x THEN y ELSE f[z]]
Get(f, x, none) == IF x \in DOMAIN f THEN f[x] ELSE none

(* The container and the record. *)
CutTo(n, kind) ==
  /\ log' = SubSeq(log, 1, n)
  /\ inc' = [number |-> inc.number + 1, term |-> inc.term + IF kind = "failover" THEN 1 ELSE 0]
  /\ UNCHANGED <<next, lease, s, br, gate, got, late, skipped, direct, mended, used, more>>

Begun(h) == \* Start of Relay. The gates are listed later, before the first send
  /\ s' = [NoSession EXCEPT !.on = TRUE, !.read = lease.at, !.reached = lease.reached,
                            !.handled = {e \in InLog : Lsn(e) > lease.at /\ Lsn(e) <= ahead}]
  /\ owner' = h /\ listed' = FALSE
  /\ flight' = {[f EXCEPT !.old = TRUE] : f \in flight}
  /\ UNCHANGED <<log, next, inc, lease, br, gate, got, late, skipped, direct, mended, used, ahead, asked, drawn, brs, blame, turned>>
Ended ==
  /\ s' = NoSession /\ owner' = "none" /\ listed' = FALSE
  /\ flight' = {[f EXCEPT !.old = TRUE] : f \in flight}
  /\ UNCHANGED <<log, next, inc, lease, br, gate, got, late, skipped, direct, mended, used, ahead, asked, drawn, brs, blame, turned>>

Done(to) == \A e \in InLog : Lsn(e) > lease.at /\ Lsn(e) <= to => e \in s.handled
Written(to, lost, done) == \* Checkpoint of Relay, if the position moves; Read records a loss
  /\ Holds("NoSilentLoss: a loss without a cut", lost => inc.number > 1)
  /\ Holds("CheckpointSafe", Done(to))
  /\ Holds("CheckpointSafe: Ahead", Done(done))
  /\ lease' = [lease EXCEPT !.at = to, !.reached = Max(@, s.reached), !.lost = lost, !.term = IF lease.lost /\ ~lost THEN None ELSE @]
  \* A host reads from the beginning again before its record has moved there. A renewal in between forgets nothing.
  /\ s' = IF to = lease.at THEN s ELSE [s EXCEPT !.handled = {e \in @ : e \in InLog => Lsn(e) > to}]
  /\ ahead' = done
  /\ UNCHANGED <<log, next, inc, br, gate, got, late, skipped, direct, mended, used, owner, listed, asked, drawn, flight, brs, blame, turned>>
Back(to, history) == \* a rewind or a restart was applied
  /\ Holds("CheckpointSafe: moved back without a request", asked)
  /\ lease' = [NewLease(history) EXCEPT !.at = to]
  /\ s' = [s EXCEPT !.reached = 0, !.ahead = FALSE] /\ ahead' = 0
  /\ UNCHANGED <<log, next, inc, br, gate, got, late, skipped, direct, mended, used, owner, listed, asked, drawn, flight, brs, blame, turned>>
Inherits(to, done, filled, history) == \* a child of a split, or the lease of a gap
  /\ Holds("CheckpointSafe: ahead of the lease before", to <= lease.at /\ done <= Max(lease.at, ahead))
  /\ Holds("the lease of a gap has another history", history = lease.history \/ (filled /\ to = 0))
  /\ lease' = IF history = lease.history THEN [lease EXCEPT !.at = to] ELSE NewLease(history)
  /\ ahead' = done
  /\ s' = NoSession /\ owner' = "none" /\ listed' = FALSE
  /\ flight' = {[f EXCEPT !.old = TRUE] : f \in flight}
  /\ UNCHANGED <<log, next, inc, br, gate, got, late, skipped, direct, mended, used, asked, drawn, brs, blame, turned>>

Reads(h, from, to) ==
  IF owner # h \/ lease.lost THEN UNCHANGED <<vars, more>>
  ELSE IF Len(log) < s.reached
    THEN s' = [s EXCEPT !.ahead = TRUE] /\ UNCHANGED <<log, next, inc, lease, br, gate, got, late, skipped, direct, mended, used, more>>
    ELSE /\ Holds("CheckpointSafe: a page after a position that was not reached", from = s.read \/ asked \/ (from <= s.read /\ from >= lease.at /\ Done(from)))
         /\ s' = [s EXCEPT !.read = to, !.reached = Max(@, to), !.ahead = FALSE]
         /\ lease' = [lease EXCEPT !.term = inc.term, !.inc = inc.number]
         /\ UNCHANGED <<log, next, inc, br, gate, got, late, skipped, direct, mended, used, more>>

(* Sends. An event that a cut removed may still be in the memory of a host that read it before. *)
InTurn(q) ==
  LET last == q[Len(q)] IN
  /\ \A i \in 1..(Len(q) - 1) : q[i] < q[i + 1]
  /\ \A e \in Elems(q) \cap InLog : Lsn(e) <= s.read
  /\ \A e \in InLog : Lsn(e) > lease.at /\ e < last /\ e \notin Elems(q) => e \in s.handled
NoBreaker == [failing |-> {}, beside |-> {}, blamed |-> {}, paused |-> FALSE]
Breaker(h) == Get(brs, h, NoBreaker)
Outcome(x, good, bad) == \* Succeed and Fail of Relay; a failure beside an accepted message does not count for a pause
  LET y == IF good = {} THEN x
             ELSE [failing |-> {}, beside |-> {}, blamed |-> (x.blamed \cup x.failing) \ good, paused |-> FALSE]
      failing == y.failing \cup bad
      beside == IF good = {} THEN y.beside \ bad ELSE y.beside \cup bad IN
  [y EXCEPT !.failing = failing, !.beside = beside, !.paused = @ \/ Cardinality(failing \ beside) >= MinFailing]

Sends(c, h, q, keys) ==
  LET drain == Get(drawn, h, <<>>) # <<>> /\ IsPrefix(q, drawn[h]) IN
  /\ Holds("OnlyDrainer: the host does not own the range", owner = h)
  /\ IF drain THEN Holds("OnlyDrainer: the gate is open", gate[K].closed)
     ELSE /\ Holds("OnlyDrainer: the gates were not listed", listed)
          /\ Holds("OnlyDrainer", ~gate[K].closed)
          /\ Holds("KeyOrder", InTurn(q))
          /\ Holds("KeyOrder: another batch of the key is under way", \A f \in flight : f.old \/ f.drain)
  /\ Holds("Probe: several keys during a pause", Breaker(h).paused => keys = 1)
  /\ flight' = flight \cup {[call |-> c, msgs |-> q, drain |-> drain, old |-> FALSE]}
  /\ drawn' = IF drain THEN With(drawn, h, <<>>) ELSE drawn
  /\ UNCHANGED <<vars, owner, listed, ahead, asked, brs, blame, turned>>
The(c) == CHOOSE f \in flight : f.call = c
Arrives(c, n) ==
  LET msgs == SubSeq(The(c).msgs, 1, n) had == Elems(got) IN
  /\ Holds("KeyOrder: at the broker", \A i \in DOMAIN msgs : msgs[i] \in had \/ msgs[i] \notin InLog
       \/ \A e \in InLog : e < msgs[i] => e \in had \/ e \in skipped \/ \E j \in 1..(i - 1) : msgs[j] = e)
  /\ got' = Arrive(got, msgs)
  /\ UNCHANGED <<log, next, inc, lease, s, br, gate, late, skipped, direct, mended, used, more>>
Answers(c, h, n, good, bad, refused, counts) ==
  LET f == The(c)
      after == IF counts THEN Outcome(Breaker(h), good, bad) ELSE Breaker(h) IN
  /\ flight' = flight \ {f}
  /\ s' = IF f.drain \/ f.old THEN s ELSE [s EXCEPT !.handled = @ \cup Elems(SubSeq(f.msgs, 1, n))]
  /\ turned' = IF refused THEN turned \cup {f.msgs[n + 1]} ELSE turned
  /\ brs' = With(brs, h, after)
  /\ blame' = IF counts THEN With(blame, h, K \in bad /\ K \in after.blamed /\ ~after.paused) ELSE blame
  /\ UNCHANGED <<log, next, inc, lease, br, gate, got, late, skipped, direct, mended, used, owner, listed, ahead, asked, drawn>>
Others(h, good, bad) ==
  /\ brs' = With(brs, h, Outcome(Breaker(h), good, bad))
  /\ UNCHANGED <<vars, owner, listed, ahead, asked, drawn, flight, blame, turned>>

(* Gates. *)
Admits(g, e, placed) == IF placed /\ e \in InLog THEN Admit(g, e)
  ELSE [g EXCEPT !.parked = IF e \in Elems(@) THEN @ ELSE Append(@, e)]
RECURSIVE AdmitsAll(_, _)
AdmitsAll(g, q) == IF q = <<>> THEN g ELSE AdmitsAll(Admits(g, Head(q), TRUE), Tail(q))
Stored(g, stored) ==
  /\ Holds("ParkedOnce: other events were stored than the gate admits", Elems(g.parked) \ Elems(gate[K].parked) = stored)
  /\ gate' = [gate EXCEPT ![K] = g]
  /\ UNCHANGED <<log, next, inc, lease, s, br, got, late, skipped, direct, mended, used, more>>
  /\ Holds("ParkedOnce", ParkedOnce')
ParksFirst(h, q, kind, stored, placed) ==
  /\ Holds("OnlyDrainer: a host parks that does not own the range", owner = h)
  /\ Holds("KeyOrder: parked", InTurn(q))
  /\ Holds("Evidence", IF kind = "auto" THEN Get(blame, h, FALSE) ELSE q[1] \in turned)
  /\ Stored(Admits(IF gate[K].closed THEN gate[K] ELSE [Open EXCEPT !.closed = TRUE, !.auto = kind = "auto"], q[1], placed), stored)
Follows(h, q, stored) ==
  /\ Holds("OnlyDrainer: a host parks that does not own the range", owner = h)
  /\ Holds("KeyOrder: parked", InTurn(q))
  /\ Holds("OnlyDrainer: the gate is open", gate[K].closed)
  /\ Stored(AdmitsAll(gate[K], q), stored)
IsParked(h, q) ==
  /\ s' = IF owner = h THEN [s EXCEPT !.handled = @ \cup Elems(q)] ELSE s
  /\ UNCHANGED <<log, next, inc, lease, br, gate, got, late, skipped, direct, mended, used, more>>

Draws(h, q) ==
  /\ Holds("OnlyDrainer: a host drains that does not own the range", owner = h)
  /\ Holds("a drain without a request", gate[K].closed /\ Intent(gate[K]) # "none")
  /\ Holds("KeyOrder: the parked events", IsPrefix(q, gate[K].parked))
  /\ drawn' = With(drawn, h, q)
  /\ UNCHANGED <<vars, owner, listed, ahead, asked, flight, brs, blame, turned>>
Removes(h, q, skip, intent, auto) ==
  LET g == gate[K] rest == SubSeq(g.parked, Len(q) + 1, Len(g.parked)) IN
  /\ Holds("OnlyDrainer: a host drains that does not own the range", owner = h)
  /\ Holds("KeyOrder: the parked events", IsPrefix(q, g.parked))
  /\ IF skip THEN Holds("NoSilentLoss: skipped without a request", g.intent = "skip" /\ Len(q) = 1)
     ELSE Holds("NoSilentLoss: removed before it was sent", Elems(q) \subseteq Elems(got))
  /\ gate' = [gate EXCEPT ![K] = [g EXCEPT !.parked = rest, !.gone = @ \cup Elems(q), !.intent = intent, !.auto = auto]]
  /\ skipped' = IF skip THEN skipped \cup Elems(q) ELSE skipped
  /\ drawn' = With(drawn, h, <<>>)
  /\ UNCHANGED <<log, next, inc, lease, s, br, got, late, direct, mended, used, owner, listed, ahead, asked, flight, brs, blame, turned>>
Sets(h, intent, auto) ==
  /\ Holds("OnlyDrainer: a host drains that does not own the range", h = "operator" \/ owner = h)
  /\ gate' = [gate EXCEPT ![K].intent = intent, ![K].auto = auto]
  /\ drawn' = With(drawn, h, <<>>)
  /\ UNCHANGED <<log, next, inc, lease, s, br, got, late, skipped, direct, mended, used, owner, listed, ahead, asked, flight, brs, blame, turned>>
Opens(h) ==
  /\ Holds("OnlyDrainer: a host drains that does not own the range", owner = h)
  /\ Holds("NoSilentLoss: opened with parked events", gate[K].parked = <<>>) /\ Holds("a drain without a request", Intent(gate[K]) # "none")
  /\ gate' = [gate EXCEPT ![K] = Open]
  /\ drawn' = With(drawn, h, <<>>)
  /\ UNCHANGED <<log, next, inc, lease, s, br, got, late, skipped, direct, mended, used, owner, listed, ahead, asked, flight, brs, blame, turned>>

Line(x) ==
  CASE x[1] = "commit" -> log' = Append(log, next) /\ next' = next + 1 /\ UNCHANGED <<inc, lease, s, br, gate, got, late, skipped, direct, mended, used, more>>
    [] x[1] = "cut" -> CutTo(x[2], x[3])
    [] x[1] = "start" -> Begun(x[2])
    [] x[1] = "end" -> Ended
    [] x[1] = "lease" -> Written(IF x[2] < 0 THEN lease.at ELSE x[2], x[3], x[4]) /\ Holds("NoSilentLoss", NoSilentLoss')
    [] x[1] = "back" -> Back(x[2], x[3])
    [] x[1] = "child" -> Inherits(IF x[2] < 0 THEN lease.at ELSE x[2], x[3], FALSE, x[4])
    [] x[1] = "fill" -> Inherits(IF x[2] < 0 THEN lease.at ELSE x[2], x[3], TRUE, x[4])
    [] x[1] = "asks" -> asked' = x[2] /\ UNCHANGED <<vars, owner, listed, ahead, drawn, flight, brs, blame, turned>>
    [] x[1] = "read" -> Reads(x[2], x[3], x[4])
    [] x[1] = "listed" -> listed' = (listed \/ owner = x[2]) /\ UNCHANGED <<vars, owner, ahead, asked, drawn, flight, brs, blame, turned>>
    [] x[1] = "send" -> Sends(x[2], x[3], x[4], x[5])
    [] x[1] = "arrive" -> Arrives(x[2], x[3])
    [] x[1] = "answer" -> Answers(x[2], x[3], x[4], x[5], x[6], x[7], x[8])
    [] x[1] = "others" -> Others(x[2], x[3], x[4])
    [] x[1] = "park" -> ParksFirst(x[2], x[3], x[4], x[5], x[6])
    [] x[1] = "follow" -> Follows(x[2], x[3], x[4])
    [] x[1] = "parked" -> IsParked(x[2], x[3])
    [] x[1] = "first" -> Draws(x[2], x[3])
    [] x[1] = "remove" -> Removes(x[2], x[3], x[4], x[5], x[6])
    [] x[1] = "intent" -> Sets(x[2], x[3], x[4])
    [] OTHER -> x[1] = "open" /\ Opens(x[2])

TraceInit ==
  /\ b \in DOMAIN Traces /\ at = 1 /\ InitFrom(Begins[b])
  /\ owner = "none" /\ listed = FALSE /\ ahead = 0 /\ asked = FALSE /\ flight = {} /\ turned = {}
  /\ drawn = <<>> /\ brs = <<>> /\ blame = <<>>
TraceNext ==
  /\ at <= Len(Traces[b])
  /\ \E x \in {Traces[b][at]} : \* a value, which a prime does not change
     /\ PrintT(<<b, at>>) /\ Line(x)
  /\ at' = at + 1 /\ b' = b
  /\ at = Len(Traces[b]) => PrintT(<<"explained", b>>)
Explained == TraceInit /\ [][TraceNext]_<<vars, more, b, at>>
=============================================================================
