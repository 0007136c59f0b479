public import Foundation
package import Wire

/// A JSON value of your own inside a payload: custom keys, a Live Activity's content state, a
/// browser notification's options.
///
/// ```swift
/// let custom: [String: PayloadValue] = ["order": 4711, "express": true, "items": ["tea", "milk"]]
/// ```
public enum PayloadValue: Hashable, Sendable {
  case null
  case bool(Bool)
  case int(Int64)
  /// Finite; JSON knows no other.
  case double(Double)
  case string(String)
  case array([PayloadValue])
  case object([String: PayloadValue])
}

extension PayloadValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringInterpolation,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  public init(nilLiteral: ()) { self = .null }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(integerLiteral value: Int64) { self = .int(value) }
  public init(floatLiteral value: Double) { self = .double(value) }
  public init(stringLiteral value: String) { self = .string(value) }
  public init(arrayLiteral elements: PayloadValue...) { self = .array(elements) }

  /// Of two members with one name the later counts.
  public init(dictionaryLiteral elements: (String, PayloadValue)...) {
    self = .object(Dictionary(elements) { _, later in later })
  }
}

extension PayloadValue {
  /// The value as Foundation's encoder writes it.
  ///
  /// The default encoder is the one whose output ActivityKit reads back: dates are seconds since
  /// 2001.
  /// - Throws: What the encoder throws; ``PayloadError`` for a document that nests too deep.
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/activitykit/starting-and-updating-live-activities-with-activitykit-push-notifications>
  public init(encoding value: some Encodable, with encoder: JSONEncoder = JSONEncoder()) throws {
    self.init(try JSONValue.parse(try encoder.encode(value)))
  }

  /// Numbers that a whole number of 64 bits can hold stay whole.
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
  /// Compact JSON; members sorted by name, so that equal values give equal bytes.
  ///
  /// - Parameter member: What the value is, for the error.
  /// - Throws: ``PayloadError`` for a number that is not finite, or nesting beyond what a hub
  ///   reads.
  func encoded(as member: String) throws(PayloadError) -> [UInt8] {
    var writer = JSONWriter()
    try write(to: &writer, member: member, depth: 0)
    return writer.bytes
  }

  /// How deep arrays and objects may nest: four levels remain for what encloses a value.
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
  /// A map of texts.
  init(_ texts: [String: String]) { self = texts.mapValues { .string($0) } }
}

/// A payload in the form of one push service, checked when it was made: what it encodes to is valid
/// and within the service's limit.
///
/// ```swift
/// let payload = try APNsPayload(.init(alert: .init(title: "Tea", body: "It is ready.")))
/// print("\(payload.size) of \(payload.limit) bytes")
/// try await hub.send(PushNotification(payload), to: "kitchen")
/// ```
public protocol PushPayload: Hashable, Sendable {
  /// Whose devices it is for.
  static var platform: PushPlatform { get }
  /// What is sent; equal payloads have equal bytes.
  var body: Data { get }
  /// The media type of ``body``.
  var contentType: String { get }
  /// Headers for the push service.
  var headers: [String: String] { get }
  /// What the push service counts, in bytes.
  var size: Int { get }
  /// The most that ``size`` may be.
  var limit: Int { get }
}

extension PushPayload {
  public var contentType: String { WireName.json }
  public var headers: [String: String] { [:] }
  public var size: Int { body.count }
}

extension PushNotification {
  /// A native notification of this payload.
  public init(_ payload: some PushPayload) {
    self.init(
      format: .native(type(of: payload).platform), body: payload.body,
      contentType: payload.contentType, headers: payload.headers)
  }
}
