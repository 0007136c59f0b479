/// Counters over all requests since the start or the last reset (emulator.md, section 2.4).
struct Statistics: Sendable {
  private(set) var requests = 0
  private var success = 0
  private var refused = [Int](repeating: 0, count: APNsReason.allCases.count)
  /// Answers that no rule of the service made: status and reason as a fault gave them.
  private var spoilt: [String: Int] = [:]
  private var unanswered = 0
  private var actions = [Int](repeating: 0, count: StoreAction.allCases.count)
  /// Requests by the binary logarithm of their microseconds.
  private var latency = [Int](repeating: 0, count: 33)
  private(set) var peakStreams = 0

  private static let places = Dictionary(
    uniqueKeysWithValues: APNsReason.allCases.enumerated().map { ($1, $0) })

  mutating func count(_ answer: CountedAnswer, action: StoreAction?, microseconds: Int) {
    requests += 1
    switch answer {
    case .success: success += 1
    case .refused(let reason): refused[Self.places[reason] ?? 0] += 1
    case .spoilt(let status, let reason):
      spoilt["\(status) \(reason ?? "")", default: 0] += 1
    case .none: unanswered += 1
    }
    if let action { actions[action.rawValue] += 1 }
    latency[microseconds < 1 ? 0 : min(32, Int.bitWidth - microseconds.leadingZeroBitCount)] += 1
  }

  mutating func count(openStreams: Int) { peakStreams = max(peakStreams, openStreams) }

  enum CountedAnswer: Sendable {
    case success
    case refused(APNsReason)
    case spoilt(status: Int, reason: String?)
    case none
  }

  var json: JSON {
    var answers: [JSON] = []
    func add(_ status: Int, _ reason: String?, _ count: Int) {
      guard count > 0 else { return }
      answers.append([
        "pns": "apns", "status": JSON(status), "reason": JSON(reason), "count": JSON(count),
      ])
    }
    add(200, nil, success)
    for (reason, count) in zip(APNsReason.allCases, refused) {
      add(reason.status, reason.rawValue, count)
    }
    for (key, count) in spoilt.sorted(by: { $0.key < $1.key }) {
      let parts = key.split(separator: " ", maxSplits: 1)
      add(Int(parts.first ?? "") ?? 0, parts.dropFirst().first.map(String.init), count)
    }
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
