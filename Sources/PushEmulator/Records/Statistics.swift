/// Counters over all requests since the start or the last reset (emulator.md, section 2.4).
struct Statistics: Sendable {
  private(set) var requests = 0
  /// Of APNs, which is counted without a search: success, and refusals by reason.
  private var success = 0
  private var refused = [Int](repeating: 0, count: APNsReason.allCases.count)
  /// Answers of the other services, and those that a fault made.
  private var others: [Answer: Int] = [:]
  private var unanswered = 0
  private var actions = [Int](repeating: 0, count: StoreAction.allCases.count)
  /// Requests by the binary logarithm of their microseconds.
  private var latency = [Int](repeating: 0, count: 33)
  private(set) var peakStreams = 0

  private static let places = Dictionary(
    uniqueKeysWithValues: APNsReason.allCases.enumerated().map { ($1, $0) })

  private struct Answer: Hashable {
    let service: FaultRule.Service
    let status: Int
    let reason: String?
  }

  /// - Parameters:
  ///   - action: What became of the message, if there was one.
  ///   - microseconds: From the request's arrival to its answer.
  mutating func count(
    _ answer: CountedAnswer, of service: FaultRule.Service, action: StoreAction?, microseconds: Int
  ) {
    requests += 1
    switch answer {
    case .apns(nil): success += 1
    case .apns(let reason?): refused[Self.places[reason] ?? 0] += 1
    case .answered(let status, let reason), .spoilt(let status, let reason):
      others[Answer(service: service, status: status, reason: reason), default: 0] += 1
    case .none: unanswered += 1
    }
    if let action { actions[action.rawValue] += 1 }
    latency[microseconds < 1 ? 0 : min(32, Int.bitWidth - microseconds.leadingZeroBitCount)] += 1
  }

  mutating func count(openStreams: Int) { peakStreams = max(peakStreams, openStreams) }

  enum CountedAnswer: Sendable {
    /// APNs' own; `nil` for success.
    case apns(APNsReason?)
    /// Another service's.
    case answered(status: Int, reason: String?)
    /// A fault's.
    case spoilt(status: Int, reason: String?)
    case none
  }

  var json: JSON {
    var answers: [JSON] = []
    func add(_ service: FaultRule.Service, _ status: Int, _ reason: String?, _ count: Int) {
      guard count > 0 else { return }
      answers.append([
        "pns": .string(service.rawValue), "status": JSON(status), "reason": JSON(reason),
        "count": JSON(count),
      ])
    }
    add(.apns, 200, nil, success)
    for (reason, count) in zip(APNsReason.allCases, refused) {
      add(.apns, reason.status, reason.rawValue, count)
    }
    let sorted = others.sorted {
      ($0.key.service.rawValue, $0.key.status, $0.key.reason ?? "")
        < ($1.key.service.rawValue, $1.key.status, $1.key.reason ?? "")
    }
    for (answer, count) in sorted { add(answer.service, answer.status, answer.reason, count) }
    let storeActions = StoreAction.allCases.map {
      JSON.Member(name: $0.word, value: JSON(actions[$0.rawValue]))
    }
    let histogram = latency.enumerated().filter { $1 > 0 }.map { place, count -> JSON in
      ["belowMicroseconds": .int(1 << Int64(place)), "count": JSON(count)]
    }
    return [
      "requests": JSON(requests), "unanswered": JSON(unanswered), "answers": .array(answers),
      "storeActions": .object(storeActions), "latency": .array(histogram),
      "peakConcurrentStreams": JSON(peakStreams),
    ]
  }
}
