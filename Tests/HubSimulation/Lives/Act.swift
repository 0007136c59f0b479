/// An action of clients or a fault in a life. Times are in milliseconds; `hub`, `device`, `handle`,
/// `user` and `machine` count from 0, and `line` is the id of an earlier line of the plan.
/// ``arguments`` has the arguments of each in their order; the comment of a case explains their
/// values.
package enum Act: String, CaseIterable, Sendable {
  // Actions of clients.
  /// tags: a bit for each; user: 0 is nobody; template: 0 is none
  case put
  case patch
  case delete
  /// Makes a registration.
  case register
  /// line: of a `register`
  case unregister
  /// kind: 0 APNs, 1 FCM, 2 template, 3 WNS, 4 Web Push; keyless: 1 without a key for repeats
  case send
  case direct
  /// To `count` handles from `handle` on.
  case batch
  /// As `send`; due after `delay`.
  case schedule
  /// line: of a `schedule`
  case cancel
  /// The same again with its key; line: of a send of any kind
  case again
  /// line: of a send of any kind
  case abort
  /// platform: 0 APNs, 1 FCM, 2 WNS, 3 Web Push; state: 0 right, 1 wrong, 2 removed, 3 another right
  /// one, 4 one that leads nowhere (of APNs and FCM; another is right)
  case credential
  case deleteHub
  case createHub
  case erase
  /// A query of an operator. subject: 0 the count of an audience, 1 statistics, 2 feedback,
  /// 3 states of credentials, 4 hubs, 5 activity, 6 devices, 7 notifications; of the last one
  /// 8 progress, 9 errors, 10 why a device got it or not
  case look

  // Faults of processes and machines.
  /// Another process starts after `ms`.
  case kill
  /// As `kill`, with notice, as an upgrade does.
  case stop
  case pause
  /// As `pause`; its steady clock stands still as well.
  case suspend
  /// Somebody sets the time of day. machine: -1 is the database; shift: forward, or back below 0
  case step
  // Faults of the database and the network to it.
  /// ways: 0 both, 1 only questions are lost, 2 only answers
  case cut
  /// call: of ``StoreCalls``; after: how many of them pass before; answer: 1 when the answer is lost,
  /// 0 when the question is
  case lose
  /// share: of a thousand answers
  case losses
  /// It takes connections and answers nothing.
  case hang
  /// commits: how many are lost, where the database is not synchronous
  case failover
  /// All nodes end, and begin after `ms` with the database as it was `age` before. server: 1 when it is
  /// on another server by then, whose commits have numbers of their own
  case restore
  /// error: of ``StoreCalls/errors``
  case refuse
  // Faults of a push service.
  /// Retry-After: in seconds, 0 names none
  case throttle
  /// As `throttle`, with a status of HTTP.
  case fail
  /// It answers nothing.
  case silence
  /// It does not take the credential. machine + 1: 0 is all
  case forbid
  /// No connection to it comes about. machine + 1: 0 is all
  case disconnect
  /// The app of a handle is gone.
  case die
  /// It calls every handle dead.
  case slander
  case replace
  /// fault: what befalls its next request (``ServiceFaults/Single``)
  case reset
  /// It ends a connection in good order. reason: 0 Shutdown, 1 IdleTimeout
  case goAway
  /// The token services of FCM and WNS. how: 0 answers 500, 1 answers nothing, 2 is not reached
  case withhold
  /// Access tokens of FCM and WNS end before their time.
  case revoke

  /// The names of its arguments, in their order. `ms` is a length that a shorter history may cut.
  package var arguments: [String] {
    switch self {
    case .put: ["hub", "device", "handle", "tags", "user", "template"]
    case .patch: ["hub", "device", "tags"]
    case .delete: ["hub", "device"]
    case .register: ["hub", "handle", "tags"]
    case .send: ["hub", "kind", "expression", "keyless"]
    case .direct, .die: ["hub", "handle"]
    case .batch: ["hub", "handle", "count"]
    case .schedule: ["hub", "kind", "expression", "delay"]
    case .unregister, .cancel, .again, .abort: ["line"]
    case .credential: ["hub", "platform", "state"]
    case .deleteHub, .createHub: ["hub"]
    case .erase: ["hub", "user"]
    case .look: ["hub", "subject"]
    case .kill, .stop, .pause, .suspend: ["machine", "ms"]
    case .step: ["machine", "shift"]
    case .cut: ["machine", "ms", "ways"]
    case .lose: ["machine", "call", "after", "answer"]
    case .losses: ["ms", "share"]
    case .hang: ["ms"]
    case .failover: ["ms", "commits"]
    case .restore: ["ms", "age", "server"]
    case .refuse: ["ms", "error"]
    case .throttle: ["platform", "ms", "Retry-After"]
    case .fail: ["platform", "ms", "status", "Retry-After"]
    case .silence, .slander: ["platform", "ms"]
    case .forbid, .disconnect: ["platform", "ms", "machine + 1"]
    case .replace: ["handle", "by"]
    case .reset: ["platform", "fault"]
    case .goAway: ["platform", "reason"]
    case .withhold: ["ms", "how"]
    case .revoke: []
    }
  }

  /// Which argument is a length; `nil` for what has none.
  package var length: Int? { arguments.firstIndex(of: "ms") }

  /// The values that an argument may have in a plan; `line` is looked at by ``references``.
  func range(of argument: String, in plan: Plan) -> ClosedRange<Int> {
    switch argument {
    case "hub": 0...plan[.hubs] - 1
    case "machine": (self == .step ? -1 : 0)...plan[.nodes] - 1
    case "machine + 1": 0...plan[.nodes]
    case "tags": 0...31
    case "platform": 0...plan[.platforms] - 1
    case "kind": 0...(plan[.platforms] > 2 ? 4 : 2)
    case "template", "keyless", "answer", "reason", "server": 0...1
    case "ways", "how": 0...2
    case "state": 0...4
    case "subject": 0...10
    case "expression": 0...9
    case "call": 0...StoreCalls.names.count - 1
    case "error": 0...StoreCalls.errors.count - 1
    case "fault": 0...ServiceFaults.Single.allCases.count - 1
    case "count": 1...1_000
    case "share": 0...1_000
    case "status": 400...599
    // A batch goes to devices of APNs, and a life of two platforms has no others than theirs.
    case "handle" where self == .batch || plan[.platforms] <= 2: 0...Names.windowsHandles - 1
    case "by" where plan[.platforms] <= 2: 0...Names.windowsHandles - 1
    // User 0 is nobody, and nothing of nobody's can be erased.
    case "user" where self == .erase: 1...9_999
    case "device", "handle", "by", "user": 0...9_999
    // Nothing that was on its way to the old database comes to the new one.
    case "ms" where self == .restore: 10_000...1_000_000_000
    case "shift": -1_000_000_000...1_000_000_000
    default: 0...1_000_000_000
    }
  }

  /// The acts that its `line` may refer to.
  var references: Set<Act> {
    switch self {
    case .unregister: [.register]
    case .cancel: [.schedule]
    case .again, .abort: [.send, .direct, .batch, .schedule]
    default: []
    }
  }

  package var isFault: Bool {
    switch self {
    case .put, .patch, .delete, .register, .unregister, .send, .direct, .batch, .schedule, .cancel,
      .again, .abort, .credential, .deleteHub, .createHub, .erase, .look:
      false
    default: true
    }
  }

  /// Of faults: those that end by themselves, or that the end of a life heals.
  package static var faults: [Act] { allCases.filter(\.isFault) }
}
