package import Wire

extension NotificationExplanation {
  package var json: [UInt8] {
    var writer = JSONWriter(capacity: 2048)
    writer.beginObject()
    writer.member("notificationId", notificationID)
    writer.member("state", state.rawValue)
    writer.member("verdict", verdict.rawValue)
    writer.member("text", text)
    writer.array("facts", facts) { $1.write(to: &$0) }
    writer.array("registrations", candidates) { $1.write(to: &$0) }
    writer.endObject()
    return writer.bytes
  }

  /// Reads the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let id = root["notificationId"]?.scalarText, let verdict = root["verdict"]?.scalarText
    else { throw WireFormatError("The reply explains no notification.") }
    self.init(
      notificationID: id, state: .init(rawValue: root["state"]?.scalarText ?? ""),
      verdict: Verdict(rawValue: verdict), text: root["text"]?.scalarText ?? "",
      facts: root.items("facts").map(Fact.init),
      candidates: root.items("registrations").map(Candidate.init))
  }
}

extension NotificationExplanation.Fact {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("name", name)
    writer.member("holds", holds)
    writer.member("text", text)
    writer.endObject()
  }

  fileprivate init(_ value: JSONValue) {
    self.init(
      value["name"]?.scalarText ?? "", value["holds"]?.flag, value["text"]?.scalarText ?? "")
  }
}

extension NotificationExplanation.Term {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("expression", text)
    writer.member("holds", holds)
    if !parts.isEmpty { writer.array("parts", parts) { $1.write(to: &$0) } }
    writer.endObject()
  }

  /// The parser bounds the depth.
  fileprivate init(_ value: JSONValue) {
    self.init(
      text: value["expression"]?.scalarText ?? "", holds: value["holds"]?.flag ?? false,
      parts: value.items("parts").map(Self.init))
  }
}

extension NotificationExplanation.Rendering {
  package func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("payload", payload)
    writer.member("bytes", bytes)
    writer.member("limit", limit)
    writer.array("missingProperties", missing) { $0.string($1) }
    writer.endObject()
  }

  package init(_ value: JSONValue) {
    self.init(
      payload: value["payload"]?.scalarText ?? "", bytes: value["bytes"]?.count ?? 0,
      limit: value["limit"]?.count,
      missing: value.items("missingProperties").compactMap(\.scalarText))
  }
}

extension NotificationExplanation.Candidate {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("registrationId", registrationID)
    writer.member("platform", platform?.rawValue)
    writer.member("template", template)
    writer.member("verdict", verdict.rawValue)
    writer.member("text", text)
    writer.array("facts", facts) { $1.write(to: &$0) }
    if let expression {
      writer.name("expression")
      expression.write(to: &writer)
    }
    if let rendering {
      writer.name("rendering")
      rendering.write(to: &writer)
    }
    if let outcome {
      writer.name("outcome")
      outcome.write(to: &writer)
    }
    writer.member("pushId", pushID)
    writer.member("nextTry", nextTry)
    writer.endObject()
  }

  fileprivate init(_ value: JSONValue) {
    self.init(
      registrationID: value["registrationId"]?.scalarText,
      platform: value["platform"]?.scalarText.flatMap(PushPlatform.init(installationWord:)),
      template: value["template"]?.scalarText,
      verdict: .init(rawValue: value["verdict"]?.scalarText ?? ""),
      text: value["text"]?.scalarText ?? "",
      facts: value.items("facts").map(NotificationExplanation.Fact.init))
    expression = value["expression"].map(NotificationExplanation.Term.init)
    rendering = value["rendering"].map(NotificationExplanation.Rendering.init)
    outcome = value["outcome"].flatMap(DeviceOutcome.init)
    pushID = value["pushId"]?.scalarText
    nextTry = value["nextTry"]?.scalarText.flatMap(WireDate.parse)
  }
}

extension JSONWriter {
  /// A member that is an array of what `write` makes of each element.
  package mutating func array<Element>(
    _ name: String, _ elements: [Element], _ write: (inout JSONWriter, Element) -> Void
  ) {
    self.name(name)
    beginArray()
    for element in elements { write(&self, element) }
    endArray()
  }
}

extension JSONValue {
  /// The elements of a member that is an array; none when it is not.
  package func items(_ name: String) -> [JSONValue] {
    guard case .array(let items)? = self[name] else { return [] }
    return items
  }

  package var flag: Bool? { if case .bool(let flag) = self { flag } else { nil } }
}
