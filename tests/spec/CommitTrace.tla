----------------------------- MODULE CommitTrace -----------------------------
(* A recorded run of clients that change one aggregate, as a behavior of Commit. README.md maps the
   lines to actions. Requests of an earlier commit can still arrive while a client makes its next one:
   Commit waits for them to keep its state space small, so they have a variable of their own here. *)
EXTENDS Commit, TLC

CONSTANT Trace

VARIABLES
  at,     \* the next line
  flight, \* requests that have not arrived
  ended   \* results of earlier commits
more == <<flight, ended>>

Holds(rule, holds) == IF holds THEN TRUE ELSE PrintT(<<"violates", rule>>) /\ FALSE
Stands == \* the rules of Commit, and those of earlier commits
  /\ Holds("Once", Once') /\ Holds("Together", Together')
  /\ Holds("StoredIsStored", StoredIsStored' /\ \A n \in DOMAIN ended : ended[n] = "stored" => applied'[n] = 1)
  /\ Holds("RefusedIsNot", RefusedIsNot' /\ \A n \in DOMAIN ended : ended[n] = "refused" => applied'[n] = 0)
  /\ Holds("UnknownIsHonest", UnknownIsHonest')

Reads(i, tag) == \* perhaps an earlier version
  /\ tag <= etag
  /\ c' = [c EXCEPT ![i] = [New(IF c[i].step = "begin" THEN c[i].commit ELSE c[i].commit + 1) EXCEPT !.base = tag, !.step = "send"]]
  /\ ended' = IF c[i].step # "end" THEN ended ELSE [n \in DOMAIN ended \cup {Name(i)} |-> IF n = Name(i) THEN c[i].result ELSE ended[n]]
  /\ UNCHANGED <<etag, content, events, applied, flight>>
Sends(i, call, tag) ==
  /\ Holds("Fits: the batch expects another version than was read", c[i].base = tag)
  /\ Holds("an attempt after the end, or one too many", c[i].step = "send" /\ c[i].sent < Attempts) /\ Send(i)
  /\ flight' = flight \cup {[call |-> call, name |-> Name(i), base |-> tag]} /\ ended' = ended
Arriving(call, kind) ==
  LET f == CHOOSE f \in flight : f.call = call
      i == f.name[1]
      taken == f.name \in events
      fits == f.base = etag /\ ~taken IN
  /\ Holds("Fits: the store decided otherwise", kind = IF fits THEN "stored" ELSE IF taken THEN "taken" ELSE "refused")
  /\ flight' = flight \ {f} /\ ended' = ended
  /\ IF f.name = Name(i) THEN Arrives(i)
     ELSE /\ c' = c
          /\ IF fits THEN etag' = etag + 1 /\ content' = f.name /\ events' = events \cup {f.name} /\ applied' = [applied EXCEPT ![f.name] = @ + 1]
             ELSE UNCHANGED <<etag, content, events, applied>>
Answer(i, kind) == \* Answered of Commit, after the request has arrived
  /\ c[i].step = "wait"
  /\ c' = [c EXCEPT ![i].step = IF kind = "taken" THEN "read back" ELSE "end",
                    ![i].result = CASE kind = "stored" -> "stored" [] kind = "taken" -> "none" [] OTHER -> "refused"]
  /\ UNCHANGED <<etag, content, events, applied>>
Back(i, kind) ==
  /\ Holds("RefusedIsNot: what was read back", kind # "lost" => (kind = "found") = (Name(i) \in events))
  /\ ReadBack(i, kind # "lost")

Line(x) ==
  CASE x[1] = "read" -> Reads(x[2], x[3])
    [] x[1] = "send" -> Sends(x[2], x[3], x[4])
    [] x[1] = "arrive" -> Arriving(x[2], x[3])
    [] x[1] = "answer" /\ x[3] = "lost" -> Timeout(x[2]) /\ UNCHANGED more
    [] x[1] = "answer" /\ x[3] = "throttled" -> Throttled(x[2]) /\ flight' = {f \in flight : f.call # x[4]} /\ ended' = ended
    [] x[1] = "answer" /\ x[3] \notin {"lost", "throttled"} -> Answer(x[2], x[3]) /\ UNCHANGED more
    [] x[1] = "back" -> Back(x[2], x[3]) /\ UNCHANGED more
    [] OTHER -> x[1] = "result" /\ Holds("the caller received another result: " \o c[x[2]].result, c[x[2]].result = x[3]) /\ UNCHANGED <<vars, more>>

TraceInit == Init /\ at = 1 /\ flight = {} /\ ended = <<>>
TraceNext ==
  /\ at <= Len(Trace)
  /\ \E x \in {Trace[at]} : PrintT(<<1, at>>) /\ Line(x) /\ Stands \* a value, which a prime does not change
  /\ at' = at + 1
  /\ at = Len(Trace) => PrintT(<<"explained", 1>>)
Explained == TraceInit /\ [][TraceNext]_<<vars, more, at>>
=============================================================================
