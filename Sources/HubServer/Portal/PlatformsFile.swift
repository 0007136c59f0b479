import NotificationHubs
import Wire

extension WebFile {
  /// The sheet of platforms for the portal's scripts, which import it through `platforms.js`.
  static let platforms = WebFile(
    name: "platforms.json",
    bytes: JSONValue.object(
      PushPlatform.sheetOrder.map { JSONValue.Member($0.rawValue, $0.sheet) }
    ).jsonBytes)
}

extension PushPlatform {
  fileprivate var sheet: JSONValue {
    let traits = traits
    return members([
      ("name", .string(traits.name)), ("format", .string(sendFormat)),
      ("form", .string(traits.form.rawValue)), ("limit", .number(traits.payloadLimit) ?? .null),
      ("isRetired", .bool(traits.successor != nil)), ("word", .string(word)),
      ("prefix", .string(registrationPrefix)), ("element", .string(telemetryPrefix + "Credential")),
      ("forms", .array(traits.credential.forms)), ("samples", .array(traits.samples.map(\.json))),
      ("phone", traits.phone?.json),
    ])
  }
}

extension CredentialTraits {
  /// The ways that the portal offers, the preferred one first.
  fileprivate var forms: [JSONValue] {
    let offered =
      [ways[preferredWay]]
      + ways.enumerated().filter { $0.offset != preferredWay }
      .map(\.element)
    return offered.compactMap { way in
      way.name.map { name in
        let parts = fields(of: way).map { field, isOptional in
          members([
            ("name", .string(field.property)), ("kind", .string(field.kind.rawValue)),
            // The select of an endpoint always has a value.
            ("isOptional", isOptional && field.kind != .endpoint ? .bool(true) : nil),
            ("example", field.example.map(JSONValue.string)),
          ])
        }
        return members([("key", .string(name)), ("parts", .array(parts))])
      }
    }
  }
}

extension PayloadSample {
  fileprivate var json: JSONValue {
    members([("name", .string(name)), ("body", .string(body)), ("headers", .texts(headers))])
  }
}

extension PhoneTraits {
  fileprivate var json: JSONValue {
    members([
      ("pns", .string(service)), ("name", .string(name)), ("look", .string(look)),
      ("handle", .array(handle.map(JSONValue.string))), ("showsText", .bool(showsText)),
      (
        "template",
        members([("body", .string(template)), ("headers", .texts(templateHeaders))])
      ),
      (
        "dead",
        members([("status", .number(dead.status)), ("reason", dead.reason.map(JSONValue.string))])
      ),
    ])
  }
}

private func members(_ all: [(String, JSONValue?)]) -> JSONValue {
  .object(all.compactMap { name, value in value.map { JSONValue.Member(name, $0) } })
}

extension JSONValue {
  fileprivate static func number(_ number: Int?) -> JSONValue? { number.map { .number("\($0)") } }

  /// An object of texts; `nil` for an empty one.
  fileprivate static func texts(_ texts: [String: String]) -> JSONValue? {
    guard !texts.isEmpty else { return nil }
    return .object(texts.sorted { $0.key < $1.key }.map { Member($0.key, .string($0.value)) })
  }
}
