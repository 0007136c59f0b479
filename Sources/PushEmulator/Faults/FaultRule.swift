/// One rule of fault injection (emulator.md, section 2.6), with its own counters.
struct FaultRule: Sendable {
  /// Which services it is for.
  enum Service: String, CaseIterable, Sendable {
    case apns, fcm
    case fcmToken = "fcm-token"
    case wns
    case wnsToken = "wns-token"
    case webpush, adm, baidu, xiaomi
    case any = "*"

    init(_ service: PushService) {
      self =
        switch service {
        case .apns: .apns
        case .fcm: .fcm
        case .wns: .wns
        case .webpush: .webpush
        case .adm: .adm
        case .baidu: .baidu
        case .xiaomi: .xiaomi
        }
    }

    static var words: String { allCases.map(\.rawValue).joined(separator: ", ") }
  }

  /// What a request must be like; `nil` fits all.
  struct Match: Sendable {
    var app: UInt32?
    /// As text, compared without regard to case.
    var handle: String?
    var connection: Int?
    var pathPrefix: String?

    var isOfConnections: Bool { app == nil && handle == nil && pathPrefix == nil }
  }

  /// How often and when.
  struct When: Sendable {
    var probability = 1.0
    /// Every n-th match, beginning with the n-th.
    var every: Int?
    /// The first n matches only.
    var first: Int?
    /// At most n times in all.
    var limit: Int?
    /// In ms since the Unix epoch; fires while `from <= now < until`.
    var from: Int64?
    var until: Int64?

    func includes(_ now: Int64) -> Bool {
      now >= (from ?? .min) && now < (until ?? .max)
    }
  }

  /// Before: the service does nothing with the message. After: it does all, then the answer is
  /// spoilt.
  enum Stage: String, CaseIterable, Sendable {
    case before, after
  }

  let number: Int
  let service: Service
  let match: Match
  let when: When
  let stage: Stage
  let action: FaultAction
  private(set) var matched = 0
  private(set) var fired = 0
  var buckets = FaultBuckets()

  init(
    number: Int, service: Service, match: Match, when: When, stage: Stage, action: FaultAction
  ) {
    self.number = number
    self.service = service
    self.match = match
    self.when = when
    self.stage = stage
    self.action = action
  }

  var id: String { "fault-\(number)" }

  /// Counts a match and throws the dice.
  mutating func fires(_ generator: inout SeededGenerator) -> Bool {
    matched += 1
    if let first = when.first, matched > first { return false }
    if let every = when.every, matched % every != 0 { return false }
    if let limit = when.limit, fired >= limit { return false }
    if when.probability < 1, generator.unit() >= when.probability { return false }
    fired += 1
    return true
  }
}

/// What a rule is matched against.
struct FaultSubject: Sendable {
  var service = FaultRule.Service.apns
  var app: UInt32?
  var handle: String?
  var connection: Int
  var path: String?
  /// Requests that the connection had before this one.
  var requestsBefore = 0
  /// The key or certificate in use, for throttling by credential.
  var credential: String?

  func fits(_ match: FaultRule.Match) -> Bool {
    if let wanted = match.app, wanted != app { return false }
    if let wanted = match.connection, wanted != connection { return false }
    if let wanted = match.handle, wanted.lowercased() != handle?.lowercased() { return false }
    if let prefix = match.pathPrefix, path?.hasPrefix(prefix) != true { return false }
    return true
  }
}

/// The token buckets of a throttle rule, one for each thing it is counted by.
struct FaultBuckets: Sendable {
  private var buckets: [String: TokenBucket] = [:]

  /// So many at once; then all start afresh, rather than memory growing without end.
  private static let capacity = 100_000

  mutating func take(_ key: String, rate: Double, burst: Double, now: Int64) -> Bool {
    if buckets.count >= Self.capacity, buckets[key] == nil { buckets.removeAll() }
    return buckets[key, default: TokenBucket()].take(rate: rate, burst: burst, now: now)
  }
}
