import HTTP2

/// APNs' answers on the wire (apns.md, section 4; emulator.md, end of 4.2).
extension EmulatorState {
  static func response(to answer: APNsAnswer) -> HTTP2ServerResponse {
    var fields = HTTP2FieldList()
    let idName = answer.isOfChannels ? "apns-request-id" : "apns-id"
    fields.append(name: idName.utf8, value: bytes(answer.id))
    if let uniqueID = answer.uniqueID {
      fields.append(name: "apns-unique-id".utf8, value: bytes(uniqueID))
    }
    guard let refusal = answer.refusal else {
      if let channelID = answer.channelID { fields.append("apns-channel-id", channelID) }
      if answer.body != nil { fields.append("content-type", "application/json") }
      return .init(status: answer.status, fields: fields, body: answer.body?.bytes ?? [])
    }
    fields.append("content-type", "application/json")
    return .init(
      status: refusal.reason.status, fields: fields,
      body: body(refusal.reason.rawValue, timestamp: refusal.timestamp))
  }

  /// A reply that a fault asks for; what it leaves open is filled in as APNs would.
  static func response(
    _ reply: FaultAction.Reply, id: APNsMessageID, idName: String, now: Int64
  ) -> HTTP2ServerResponse {
    var fields = HTTP2FieldList()
    fields.append(name: idName.utf8, value: bytes(id))
    var body: [UInt8] = []
    if let text = reply.body {
      body = Array(text.utf8)
    } else if let reason = reply.reason ?? usualReason(reply) {
      body = Self.body(reason, timestamp: reply.status == 410 ? now : nil)
    }
    if !body.isEmpty, !reply.headers.contains(where: { $0.name == "content-type" }) {
      fields.append("content-type", "application/json")
    }
    for header in reply.headers { fields.append(header.name, header.value) }
    return .init(status: reply.status, fields: fields, body: body)
  }

  static func usualReason(_ reply: FaultAction.Reply) -> String? {
    reply.body == nil ? APNsReason.usual(for: reply.status)?.rawValue : nil
  }

  static func body(_ reason: String, timestamp: Int64? = nil) -> [UInt8] {
    var members: [JSON.Member] = [.init(name: "reason", value: .string(reason))]
    if let timestamp { members.append(.init(name: "timestamp", value: .int(timestamp))) }
    return JSON.object(members).bytes
  }

  private static func bytes(_ id: APNsMessageID) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(36)
    id.append(to: &bytes)
    return bytes
  }
}
