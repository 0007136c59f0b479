import Foundation
import NotificationHubs

/// What the schedule counts together: gateways that share connections, or a lane by itself.
enum PoolKey: Hashable, Sendable {
  case shared(Int)
  case own(LaneKey)
}

/// What the answers to a part say about the credential as a whole.
struct PartSigns: Equatable, Sendable {
  /// Pushes that the service took, or refused for reasons of their own.
  var answered = 0
  /// Pushes that met a fault of the service (5xx) or no answer in time, or for which the service that
  /// gives out tokens had one.
  var failed = 0
  /// The service limits this sender.
  var isThrottled = false
  /// How long the service asks this sender to pause, in seconds.
  var pause: Double?
  /// How many pushes at a time the part ended with, when it was sent in steps.
  var pace: Int?

  mutating func note(_ result: PushResult) {
    switch result.outcome {
    case .throttled:
      isThrottled = true
      notePause(result)
    case .pnsUnavailable:
      failed += 1
      notePause(result)
    case let outcome where outcome.isFaultOfService: failed += 1
    default: answered += 1
    }
  }

  /// `Throttled` and `PnsUnavailable` speak of the sender, not of one handle: so does the pause
  /// that they ask for (docs/protocol/push-services/README.md, section 3, rule 2).
  private mutating func notePause(_ result: PushResult) {
    guard result.retry == .backoff, let seconds = result.retryAfter, seconds > 0 else { return }
    pause = max(pause ?? 0, Double(seconds))
  }

  /// One fault in a page says nothing; one in twenty does.
  var isTroubled: Bool { isThrottled || pause != nil || failed >= 3 && failed * 20 >= answered }
}

extension NotificationOutcome {
  /// Whether it speaks of the service or the way to it, not of the push.
  var isFaultOfService: Bool {
    switch self {
    case .pnsUnreachable, .pnsServerError, .pnsUnavailable, .tokenProviderUnreachable,
      .tokenProviderInterfaceError:
      true
    default: false
    }
  }
}

/// How many pushes may be under way under one credential: adaptive, by additive increase and
/// multiplicative decrease.
///
/// The window opens as far as the connections reach and two pages beyond, so that they never run
/// dry.
/// It halves when the service throttles this sender or fails, once for all parts that were under
/// way together, and grows again by an eighth of a page for each window that went well. A window
/// smaller than a page has pages sent in steps.
struct DispatchPool {
  /// The least window: enough to notice that things go well again.
  static let least = 16

  private(set) var window: Int
  /// How far the window may open.
  private(set) var ceiling: Int
  private(set) var targets = 0
  private(set) var restsUntil: Date?
  /// That it rests was not told by another node.
  private(set) var isRestOwn = false
  /// Counts the decreases: a part is evidence only against the window it was sent under.
  private(set) var epoch = 0
  /// Decreases because of throttling in a row.
  private var throttles = 0
  private let page: Int

  init(ceiling: Int, page: Int) {
    self.ceiling = ceiling
    self.page = page
    window = ceiling
  }

  /// The connections carry more or less than before.
  mutating func setCeiling(_ new: Int) {
    guard new != ceiling else { return }
    window = window == ceiling ? new : min(window, new)
    ceiling = new
  }

  /// Whether so many more may be on their way. What is small need not wait for a page to leave.
  func hasRoom(for count: Int) -> Bool {
    targets + count <= window || count * 10 <= page && targets + count <= window + page
  }

  mutating func enter(_ count: Int) { targets += count }

  func isResting(at now: Date) -> Bool { restsUntil.map { now < $0 } ?? false }

  /// How many pushes of a part may be sent at once; `nil`: all.
  var pace: Int? { window < page ? window : nil }

  /// What a pace grows by after a step that went well.
  static func step(page: Int) -> Int { max(1, page / 8) }

  /// A part has its answers.
  /// - Parameters:
  ///   - sent: The epoch it was sent in.
  ///   - jitter: 0 up to 1; spreads a pause that the service set no length for.
  mutating func leave(
    _ count: Int, sent: Int, _ signs: PartSigns, jitter: Double, at now: Date
  ) {
    let inFlight = targets
    targets -= count
    if let pause = signs.pause { rest(until: now.addingTimeInterval(pause)) }
    if signs.isTroubled {
      guard sent == epoch else { return }
      epoch += 1
      window = max(min(Self.least, ceiling), min(window, max(inFlight, page)) / 2)
      guard signs.isThrottled else { return }
      throttles += 1
      if signs.pause == nil {
        let pause = RetryPolicy.connectionPause(failures: throttles) * (1 + jitter / 2)
        rest(until: now.addingTimeInterval(pause))
      }
    } else if signs.answered > 0, sent == epoch {
      throttles = 0
      let reached = max(window, signs.pace ?? 0)
      window = min(ceiling, reached + max(1, Self.step(page: page) * count / reached))
    }
  }

  mutating func endRest() {
    restsUntil = nil
    isRestOwn = false
    throttles = 0
  }

  /// - Parameter isOwn: `false` when another node has reported it.
  mutating func rest(until: Date, isOwn: Bool = true) {
    guard restsUntil.map({ $0 < until }) ?? true else { return }
    restsUntil = until
    isRestOwn = isOwn
  }
}
