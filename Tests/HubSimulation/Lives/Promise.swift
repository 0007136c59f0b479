/// The promises of Belfry (docs/reliability.md) by which a life is judged. `Promises+….swift` have the
/// checks.
package enum Promise: String, CaseIterable, Sendable {
  case durable, oneOutcome, authorisedPush, onePushID, noRepeats, oneOwner, oneNotification
  case cancelledIsSilent, abortedIsSilent, handlesStay, handlesGo, fullWindow, bounded
  case worked, schedulesOnTime, takenOver, healthTells, answered
  case credentialHolds, pace
  case ends, reached, counted, erased, ownClock, finite

  package var sentence: String {
    switch self {
    case .durable: "what was acknowledged is in the database"
    case .oneOutcome: "counts add up, and nobody has two outcomes, or one without a cause"
    case .authorisedPush: "no push without an accepted notification that is for its device"
    case .onePushID: "a repeat has the id of the first, and nothing else has it"
    case .noRepeats: "where nothing fails nothing is sent twice"
    case .oneOwner: "a part has one owner, and its epoch only rises"
    case .oneNotification: "an idempotency key makes one notification"
    case .cancelledIsSilent: "a cancelled schedule is never sent"
    case .abortedIsSilent: "an aborted notification is not sent any more"
    case .handlesStay: "no registration goes unless its handle was called dead, and few if all were"
    case .handlesGo: "a handle that a trusted answer called dead, or replaced, gets nothing more"
    case .fullWindow: "nobody is given up before its time is over, and nothing is sent after it"
    case .bounded: "what is kept is bounded by what is under way"
    case .worked: "what is due has a node within a lease and 5 s, which goes on with it"
    case .schedulesOnTime: "a schedule is released when it is due, and not before"
    case .takenOver: "work of a dead node is taken over in time, whatever clocks do"
    case .healthTells: "health is 'not ready' when a node cannot work, and 'ready' when it can"
    case .answered: "every request has an answer"
    case .credentialHolds: "a right credential is used at once, and its tokens are not untimely"
    case .pace: "a push service that asks for a pause, or refuses a credential, is left alone"
    case .ends: "every accepted send comes to its end"
    case .reached: "each device of an audience is reached, or has an outcome that says why not"
    case .counted: "statistics are what the outcomes add up to"
    case .erased: "nothing is left of what was erased"
    case .ownClock: "nothing reads a clock or chance but its own"
    case .finite: "no moment lasts for ever"
    }
  }
}

/// Forms of numbers in texts for readers.
package enum Texts {
  /// A number and its noun, in the plural where that is right.
  package static func count(_ number: Int, _ one: String, _ many: String? = nil) -> String {
    "\(number) \(number == 1 ? one : many ?? one + "s")"
  }

  /// Numbers that are possible: `16 or none`.
  static func list(_ values: Set<Int?>) -> String {
    (values.compactMap { $0 }.sorted().map { "\($0)" } + (values.contains(nil) ? ["none"] : []))
      .joined(separator: " or ")
  }

  /// Seconds with three digits, as in a plan.
  package static func seconds(_ milliseconds: Int) -> String {
    let (size, sign) = (abs(milliseconds), milliseconds < 0 ? "-" : "")
    return "\(sign)\(size / 1_000).\("\(1_000 + size % 1_000)".dropFirst())"
  }
}

/// A promise that a life has seen broken.
package struct Finding: Hashable, Sendable {
  package let promise: Promise
  package let text: String
}
