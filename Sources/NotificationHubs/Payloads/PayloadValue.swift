public import Foundation
package import Wire

/// A custom JSON value in a payload: custom keys, a Live Activity's content state, a browser
/// notification's options.
///
/// ```swift
/// let custom: [String: PayloadValue] = ["order": 4711, "express": true, "items": ["tea", "milk"]]
/// ```
public enum PayloadValue: Hashable, Sendable {
  /// JSON `null`.
  case null
  /// A Boolean value.
  case bool(Bool)
  /// An integer.
  case int(Int64)
  /// A floating-point number, which must be finite as JSON has no other.
  case double(Double)
  /// A string.
  case string(String)
  /// An array.
  case array([PayloadValue])
  /// An object.
  case object([String: PayloadValue])
}

extension PayloadValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringInterpolation,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// Creates `null`.
  public init(nilLiteral: ()) { self = .null }
  /// Creates a Boolean value.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  /// Creates an integer.
  public init(integerLiteral value: Int64) { self = .int(value) }
  /// Creates a floating-point number.
  public init(floatLiteral value: Double) { self = .double(value) }
  /// Creates a string.
  public init(stringLiteral value: String) { self = .string(value) }
  /// Creates an array.
  public init(arrayLiteral elements: PayloadValue...) { self = .array(elements) }

  /// Creates an object; of members with the same name the last one applies.
  public init(dictionaryLiteral elements: (String, PayloadValue)...) {
    self = .object(Dictionary(elements) { _, later in later })
  }
}

extension PayloadValue {
  /// Creates a value from the output of Foundation's encoder.
  ///
  /// The output of the default encoder is what ActivityKit decodes: dates are seconds since 2001.
  /// - Throws: The encoder's error, or ``PayloadError`` if the document is nested too deeply.
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/activitykit/starting-and-updating-live-activities-with-activitykit-push-notifications>
  public init(encoding value: some Encodable, with encoder: JSONEncoder = JSONEncoder()) throws {
    self.init(try JSONValue.parse(try encoder.encode(value)))
  }

  /// Numbers that fit into 64-bit integers stay integers.
  package init(_ value: JSONValue) {
    switch value {
    case .null: self = .null
    case .bool(let flag): self = .bool(flag)
    case .number(let digits):
      self = Int64(digits).map { .int($0) } ?? .double(Double(digits) ?? .infinity)
    case .string(let text): self = .string(text)
    case .array(let items): self = .array(items.map { PayloadValue($0) })
    case .object(let members):
      self = .object(
        Dictionary(members.map { ($0.name, PayloadValue($0.value)) }) { _, later in later })
    }
  }
}

extension PayloadValue {
  /// Encodes compact JSON with members sorted by name, so that equal values give equal bytes.
  ///
  /// - Parameter member: The name of the value, for the error.
  /// - Throws: ``PayloadError`` for a number that is not finite, or nesting deeper than a hub
  ///   accepts.
  func encoded(as member: String) throws(PayloadError) -> [UInt8] {
    var writer = JSONWriter()
    try write(to: &writer, member: member, depth: 0)
    return writer.bytes
  }

  /// The maximum nesting depth of arrays and objects, which leaves four levels for the enclosing
  /// document.
  static let maximumDepth = JSONValue.depthLimit - 4

  private func write(
    to writer: inout JSONWriter, member: String, depth: Int
  ) throws(PayloadError) {
    guard depth <= Self.maximumDepth else {
      throw PayloadError(.outOfRange, member, "nests deeper than \(Self.maximumDepth) levels")
    }
    switch self {
    case .null: writer.raw("null")
    case .bool(let flag): writer.bool(flag)
    case .int(let number): writer.raw(String(number))
    case .double(let number):
      guard number.isFinite else {
        throw PayloadError(.outOfRange, member, "holds a number that is not finite")
      }
      writer.raw("\(number)")
    case .string(let text): writer.string(text)
    case .array(let items):
      writer.beginArray()
      for item in items { try item.write(to: &writer, member: member, depth: depth + 1) }
      writer.endArray()
    case .object(let members):
      writer.beginObject()
      for (name, value) in members.sorted(by: { $0.key < $1.key }) {
        writer.name(name)
        try value.write(
          to: &writer, member: depth < 2 ? "\(member).\(name)" : member, depth: depth + 1)
      }
      writer.endObject()
    }
  }
}

extension [String: PayloadValue] {
  /// Creates a map of strings.
  init(_ texts: [String: String]) { self = texts.mapValues { .string($0) } }
}

/// A payload in the format of one push service. It is validated on creation, so its encoding is
/// valid and within the service's limit.
///
/// ```swift
/// let payload = try APNsPayload(.init(alert: .init(title: "Tea", body: "It is ready.")))
/// print("\(payload.size) of \(payload.limit) bytes")
/// try await hub.send(PushNotification(payload), to: "kitchen")
/// ```
public protocol PushPayload: Hashable, Sendable {
  /// The platform that the payload is for.
  static var platform: PushPlatform { get }
  /// The encoded payload; equal payloads have equal bytes.
  var body: Data { get }
  /// The media type of ``body``.
  var contentType: String { get }
  /// Headers for the push service.
  var headers: [String: String] { get }
  /// The size as counted by the push service, in bytes.
  var size: Int { get }
  /// The maximum ``size``, in bytes.
  var limit: Int { get }
}

extension PushPayload {
  /// JSON in UTF-8.
  public var contentType: String { WireName.json }
  /// No headers.
  public var headers: [String: String] { [:] }
  /// The size of ``body``.
  public var size: Int { body.count }
}

extension PushNotification {
  /// Creates a native notification with this payload.
  public init(_ payload: some PushPayload) {
    self.init(
      format: .native(type(of: payload).platform), body: payload.body,
      contentType: payload.contentType, headers: payload.headers)
  }
}
