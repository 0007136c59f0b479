/// The last requests that the services got, oldest first (emulator.md, section 2.4).
struct Journal: Sendable {
  struct Entry: Sendable {
    let seq: Int
    /// In ms since the Unix epoch, by the emulator's clock.
    let time: Int64
    let service: FaultRule.Service
    let connection: Int
    let stream: Int32
    /// Names and values in turn, each ended by a NUL; `:method` and `:path` come first. Without the
    /// value of `authorization`.
    let head: [UInt8]
    let credential: Credential
    /// The device that was named; `nil` where the path says it, or none was.
    let handle: String?
    let bodyBytes: Int
    /// 0 when the request got no answer.
    let status: Int
    let reason: String?
    let faultID: String?
    let storeAction: StoreAction?
    /// How many devices a broadcast was for; `nil` for anything else.
    let recipients: Int?
    let microseconds: Int
  }

  /// What a request identified itself with, without the secret itself.
  enum Credential: Sendable {
    case none
    case token(ProviderToken)
    /// Accepted, by the name of its key or client; with what it says.
    case accepted(keyID: String, claims: [JSON.Member])
    /// Sent, and refused.
    case refusedToken
    case certificate(sha256: String)
  }

  /// Entries kept; 0 keeps none.
  let capacity: Int
  private var entries = RingBuffer<Entry>()

  init(capacity: Int) { self.capacity = capacity }

  mutating func append(_ entry: Entry) {
    guard capacity > 0 else { return }
    if entries.count >= capacity { entries.popFirst() }
    entries.append(entry)
  }

  mutating func removeAll() { entries.removeAll() }

  /// Entries after a number that fit, oldest first.
  func entries(after seq: Int, limit: Int, where fits: (Entry) -> Bool) -> [Entry] {
    var found: [Entry] = []
    for index in 0..<entries.count where found.count < limit {
      let entry = entries[index]
      if entry.seq > seq, fits(entry) { found.append(entry) }
    }
    return found
  }
}

extension Journal.Entry {
  /// The header fields as text, `:method` and `:path` first.
  var fields: [(name: String, value: String)] {
    let parts = head.split(separator: 0, omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    return stride(from: 0, to: parts.count - 1, by: 2).map { (parts[$0], parts[$0 + 1]) }
  }

  var json: JSON {
    let fields = fields
    let headers = fields.dropFirst(2).map { JSON.Member(name: $0.name, value: .string($0.value)) }
    let members: JSON = [
      "seq": JSON(seq), "time": .int(time), "pns": .string(service.rawValue),
      "connection": JSON(connection), "stream": JSON(stream),
      "method": JSON(fields.first?.value), "path": JSON(fields.dropFirst().first?.value),
      "headers": .object(headers), "auth": credential.json, "bodyBytes": JSON(bodyBytes),
      "status": status == 0 ? nil : JSON(status), "reason": JSON(reason), "faultId": JSON(faultID),
      "storeAction": JSON(storeAction?.word), "durationMs": .double(Double(microseconds) / 1000),
    ]
    guard let recipients else { return members }
    return .object((members.members ?? []) + [.init(name: "recipients", value: JSON(recipients))])
  }
}

extension Journal.Credential {
  fileprivate var json: JSON {
    switch self {
    case .none: nil
    case .refusedToken: ["verdict": "refused"]
    case .certificate(let sha256): ["certificate": .string(sha256), "verdict": "certificate"]
    case .accepted(let keyID, let claims):
      ["keyId": .string(keyID), "claims": .object(claims), "verdict": "accepted"]
    case .token(let token):
      .object(
        [
          .init(name: "keyId", value: .string(token.kid)),
          .init(
            name: "claims",
            value: ["iss": .string(token.teamID), "iat": .int(token.issuedAt)]),
          .init(name: "verdict", value: "accepted"),
        ]
          + (token.warnings.isEmpty
            ? []
            : [.init(name: "warnings", value: .array(token.warnings.map(JSON.string)))]))
    }
  }
}
