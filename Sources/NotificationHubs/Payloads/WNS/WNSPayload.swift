public import Foundation
import Wire

/// A notification for Windows: a toast, a tile, a badge or raw bytes.
///
/// ```swift
/// let toast = try WNSPayload(toast: .init(lines: ["Tea", "It is ready."], launch: "pot=2"))
/// let badge = try WNSPayload(badge: .number(3))
/// ```
/// - SeeAlso:
///   <https://learn.microsoft.com/windows/apps/design/shell/tiles-and-notifications/push-request-response-headers>
public struct WNSPayload: PushPayload {
  public static var platform: PushPlatform { .wns }
  public var limit: Int { 5000 }
  /// XML in UTF-8, or the raw bytes.
  public let body: Data
  public let contentType: String
  public let headers: [String: String]

  /// What WNS is told beside the payload; what is `nil` it decides itself.
  public struct Delivery: Hashable, Sendable {
    /// `nil`: 1 for a toast, 2 for tile and badge, 3 for raw.
    public enum Priority: Int, CaseIterable, Hashable, Sendable {
      case high = 1
      case medium, low, veryLow
    }

    /// Whether it waits for a device that is offline; raw notifications do not by themselves.
    public var isCached: Bool?
    /// How long it may wait, in whole seconds from 1.
    public var ttl: Int?
    /// Replaces an earlier one of the same tag: 1 to 16 letters and digits.
    public var tag: String?
    /// Toasts only: distinguishes equal tags; 1 to 16 letters and digits.
    public var group: String?
    public var priority: Priority?

    public init(
      isCached: Bool? = nil, ttl: Int? = nil, tag: String? = nil, group: String? = nil,
      priority: Priority? = nil
    ) {
      self.isCached = isCached
      self.ttl = ttl
      self.tag = tag
      self.group = group
      self.priority = priority
    }

    func headers(type: String) throws(PayloadError) -> [String: String] {
      try PayloadError.check(ttl, in: 1...Int(Int32.max), "X-WNS-TTL")
      for (name, word) in [("X-WNS-Tag", tag), ("X-WNS-Group", group)] {
        guard let word else { continue }
        guard word.utf8.allSatisfy(\.isLetterOrDigit), (1...16).contains(word.utf8.count)
        else { throw PayloadError(.malformed, name, "takes 1 to 16 letters and digits") }
      }
      if group != nil, type != "wns/toast" {
        throw PayloadError(.conflicting, "X-WNS-Group", "is for toasts only")
      }
      var headers = [WireName.wnsType: type]
      headers["X-WNS-Cache-Policy"] = isCached.map { $0 ? "cache" : "no-cache" }
      headers["X-WNS-TTL"] = ttl.map(String.init)
      headers["X-WNS-Tag"] = tag
      headers["X-WNS-Group"] = group
      headers["X-WNS-PRIORITY"] = priority.map { String($0.rawValue) }
      return headers
    }
  }

  /// A notification that pops up.
  /// - Throws: ``PayloadError``.
  public init(toast: Toast, delivery: Delivery = Delivery()) throws(PayloadError) {
    try self.init(xml: try toast.element(), type: "wns/toast", delivery)
  }

  /// New content for the app's tile in the start menu.
  /// - Throws: ``PayloadError``.
  public init(tile: Tile, delivery: Delivery = Delivery()) throws(PayloadError) {
    try self.init(xml: try tile.element(), type: "wns/tile", delivery)
  }

  /// A number or glyph at the app's tile or task bar button.
  /// - Throws: ``PayloadError``.
  public init(badge: Badge, delivery: Delivery = Delivery()) throws(PayloadError) {
    try self.init(xml: try badge.element(), type: "wns/badge", delivery)
  }

  /// Bytes for the app itself, 1 to 5000.
  /// - Throws: ``PayloadError``.
  public init(raw: Data, delivery: Delivery = Delivery()) throws(PayloadError) {
    guard !raw.isEmpty else { throw PayloadError(.missing, "body", "is empty") }
    try self.init(
      body: raw, contentType: "application/octet-stream", type: "wns/raw", delivery)
  }

  private init(xml: WNSElement, type: String, _ delivery: Delivery) throws(PayloadError) {
    try self.init(
      body: Data((#"<?xml version="1.0" encoding="utf-8"?>"# + xml.text).utf8),
      contentType: "application/xml", type: type, delivery)
  }

  private init(
    body: Data, contentType: String, type: String, _ delivery: Delivery
  ) throws(PayloadError) {
    try PayloadError.check(size: body.count, limit: 5000, of: "body")
    self.body = body
    self.contentType = contentType
    headers = try delivery.headers(type: type)
  }
}

/// An element that is written out; texts are escaped.
struct WNSElement {
  private let name: String
  private var attributes = ""
  private var content = ""

  /// - Parameter attributes: In this order; those that are `nil` are left out.
  init(_ name: String, _ attributes: [(String, String?)] = [], text: String = "") {
    self.name = name
    for case (let name, let value?) in attributes {
      // An XML reader turns a plain line break in an attribute into a blank.
      let escaped = value.xmlAttributeEscaped.replacingOccurrences(of: "\n", with: "&#xA;")
        .replacingOccurrences(of: "\t", with: "&#x9;")
      self.attributes += " \(name)=\"\(escaped)\""
    }
    content = text.xmlEscaped
  }

  mutating func append(_ child: WNSElement) { content += child.text }

  func appending(_ children: [WNSElement]) -> WNSElement {
    var next = self
    for child in children { next.append(child) }
    return next
  }

  var text: String {
    content.isEmpty
      ? "<\(name)\(attributes)/>" : "<\(name)\(attributes)>\(content)</\(name)>"
  }
}
