import Wire

/// The last requests that the services received, oldest first (docs/protocol/emulator.md, section
/// 2.4).
struct Journal: Sendable {
  struct Entry: Sendable {
    let seq: Int
    /// In ms since the Unix epoch, by the emulator's clock.
    let time: Int64
    let service: ServiceName
    let connection: Int
    let stream: Int32
    /// Names and values in turn, each ended by a NUL; `:method`, `:path` and `:authority` come
    /// first. Credentials are omitted (``head(_:path:)``).
    let head: [UInt8]
    let credential: Credential
    /// The named device; `nil` where the path contains it, or none was named.
    let handle: String?
    let bodyBytes: Int
    /// 0 when the request got no answer.
    let status: Int
    let reason: String?
    let faultID: String?
    let storeAction: StoreAction?
    /// Number of devices that a broadcast was for; `nil` for anything else.
    let recipients: Int?
    let microseconds: Int
    /// Approximate memory that it occupies, in bytes; set when it is appended.
    fileprivate(set) var cost = 0
  }

  /// The credential of a request, without the secret itself.
  enum Credential: Sendable {
    case none
    /// APNs' provider token, which most of its requests share.
    case token(ProviderToken)
    /// An accepted credential, by the name of its key or client, with its claims.
    case accepted(keyID: String, claims: JSONValue = [:])
    /// A refused credential.
    case refusedToken
    case certificate(sha256: String)
  }

  /// Maximum number of entries; 0 keeps none.
  let capacity: Int
  /// Approximate memory for the entries, in bytes.
  let limit: Int
  /// Number of entries dropped to make room, since the start.
  private(set) var dropped = 0
  private var cost = 0
  private var entries = RingBuffer<Entry>()
  /// Number of entries that are kept.
  var count: Int { entries.count }

  init(capacity: Int, bytes limit: Int) {
    self.capacity = capacity
    self.limit = limit
  }

  mutating func append(_ entry: Entry) {
    guard capacity > 0 else { return }
    var entry = entry
    entry.cost = entry.size(after: entries.count > 0 ? entries[entries.count - 1] : nil)
    entries.append(entry)
    cost += entry.cost
    while entries.count > 1, entries.count > capacity || cost > limit,
      let oldest = entries.popFirst()
    {
      cost -= oldest.cost
      dropped += 1
    }
  }

  mutating func removeAll() {
    entries.removeAll()
    cost = 0
  }

  /// Entries after a number that match, oldest first.
  func entries(after seq: Int, limit: Int, where fits: (Entry) -> Bool) -> [Entry] {
    var found: [Entry] = []
    for index in 0..<entries.count where found.count < limit {
      let entry = entries[index]
      if entry.seq > seq, fits(entry) { found.append(entry) }
    }
    return found
  }

  /// The last entries that match, oldest first.
  func entries(newest most: Int, where fits: (Entry) -> Bool) -> [Entry] {
    var found: [Entry] = []
    for index in (0..<entries.count).reversed() where found.count < most {
      if fits(entries[index]) { found.append(entries[index]) }
    }
    return found.reversed()
  }
}

extension Journal.Entry {
  /// Approximate memory that it occupies, in bytes.
  ///
  /// - Parameter previous: The entry before it, which may share its provider token.
  fileprivate func size(after previous: Self?) -> Int {
    let credential: Int
    switch self.credential {
    case .accepted(let keyID, let claims): credential = 64 + keyID.utf8.count + claims.size
    case .token(let token):
      let isShared =
        if case .token(let other)? = previous?.credential { token === other } else { false }
      credential = isShared ? 0 : 256 + token.bytes.count
    case .certificate(let sha256): credential = sha256.utf8.count
    case .none, .refusedToken: credential = 0
    }
    let texts = [handle, reason, faultID].reduce(0) { $0 + ($1?.utf8.count ?? 0) }
    return 2 * MemoryLayout<Self?>.stride + 32 + head.count + texts + credential
  }

  /// The header fields as text, `:method`, `:path` and `:authority` first.
  var fields: [(name: String, value: String)] {
    let parts = head.split(separator: 0, omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    return stride(from: 0, to: parts.count - 1, by: 2).map { (parts[$0], parts[$0 + 1]) }
  }

  var json: JSONValue {
    let fields = fields
    let members: JSONValue = [
      "seq": JSONValue(seq), "time": JSONValue(time), "pns": .string(service.text),
      "connection": JSONValue(connection), "stream": JSONValue(stream),
      "method": JSONValue(fields.first?.value), "path": JSONValue(fields.dropFirst().first?.value),
      "host": JSONValue(fields.dropFirst(2).first?.value),
      "headers": JSONValue(fields.dropFirst(3)), "auth": credential.json,
      "bodyBytes": JSONValue(bodyBytes),
      "status": status == 0 ? .null : JSONValue(status), "reason": JSONValue(reason),
      "faultId": JSONValue(faultID),
      "storeAction": JSONValue(storeAction?.word),
      "durationMs": JSONValue(Double(microseconds) / 1000),
    ]
    return recipients.map { members + ["recipients": JSONValue($0)] } ?? members
  }
}

extension JSONValue {
  /// Approximate memory that it occupies, in bytes.
  fileprivate var size: Int {
    switch self {
    case .null, .bool: 32
    case .number(let text), .string(let text): 48 + text.utf8.count
    case .array(let items): items.reduce(48) { $0 + $1.size }
    case .object(let members): members.reduce(48) { $0 + 48 + $1.name.utf8.count + $1.value.size }
    }
  }
}

extension Journal.Credential {
  fileprivate var json: JSONValue {
    switch self {
    case .none: .null
    case .refusedToken: ["verdict": "refused"]
    case .certificate(let sha256): ["certificate": .string(sha256), "verdict": "certificate"]
    case .accepted(let keyID, let claims):
      ["keyId": .string(keyID), "claims": claims, "verdict": "accepted"]
    case .token(let token):
      [
        "keyId": .string(token.kid),
        "claims": ["iss": .string(token.teamID), "iat": JSONValue(token.issuedAt)],
        "verdict": "accepted",
      ]
        + (token.warnings.isEmpty
          ? [:] : ["warnings": .array(token.warnings.map(JSONValue.string))])
    }
  }
}

/// Counters over all requests since the start or the last reset (docs/protocol/emulator.md,
/// section 2.4).
struct Statistics: Sendable {
  private(set) var requests = 0
  /// Counts of success, the most frequent result, indexed directly by the service name's index.
  private var successes = [Int](repeating: 0, count: ServiceName.all.count)
  private var others: [Answer: Int] = [:]
  private var unanswered = 0
  private var actions = [Int](repeating: 0, count: StoreAction.allCases.count)
  /// Requests by the binary logarithm of their microseconds.
  private var latency = [Int](repeating: 0, count: 33)
  private(set) var peakStreams = 0

  private struct Answer: Hashable {
    let service: ServiceName
    let status: Int
    let reason: String?
  }

  /// - Parameters:
  ///   - status: 0 for no reply.
  ///   - action: The result for the message, if there was one.
  ///   - microseconds: Time from the request's arrival to its reply.
  mutating func count(
    _ service: ServiceName, status: Int, reason: String?, action: StoreAction?, microseconds: Int
  ) {
    requests += 1
    if status == 200, reason == nil {
      successes[service.index] += 1
    } else if status == 0 {
      unanswered += 1
    } else {
      others[Answer(service: service, status: status, reason: reason), default: 0] += 1
    }
    if let action { actions[action.rawValue] += 1 }
    latency[microseconds < 1 ? 0 : min(32, Int.bitWidth - microseconds.leadingZeroBitCount)] += 1
  }

  mutating func count(openStreams: Int) { peakStreams = max(peakStreams, openStreams) }

  /// - Parameter dropped: What had to go to make room.
  func json(dropped: JSONValue) -> JSONValue {
    var counts = others
    for (service, count) in zip(ServiceName.all, successes) where count > 0 {
      counts[Answer(service: service, status: 200, reason: nil)] = count
    }
    let answers = counts.sorted {
      ($0.key.service.text, $0.key.status, $0.key.reason ?? "")
        < ($1.key.service.text, $1.key.status, $1.key.reason ?? "")
    }.map { answer, count -> JSONValue in
      [
        "pns": .string(answer.service.text), "status": JSONValue(answer.status),
        "reason": JSONValue(answer.reason), "count": JSONValue(count),
      ]
    }
    let storeActions = StoreAction.allCases.map {
      JSONValue.Member($0.word, JSONValue(actions[$0.rawValue]))
    }
    let histogram = latency.enumerated().filter { $1 > 0 }.map { place, count -> JSONValue in
      ["belowMicroseconds": JSONValue(1 << Int64(place)), "count": JSONValue(count)]
    }
    return [
      "requests": JSONValue(requests), "unanswered": JSONValue(unanswered),
      "answers": .array(answers),
      "storeActions": .object(storeActions), "latency": .array(histogram),
      "peakConcurrentStreams": JSONValue(peakStreams), "dropped": dropped,
    ]
  }
}
