import Foundation
import HTTPServer
import HubCore
import NotificationHubs
import Synchronization
import Wire

/// Builds the replies to one request in the service's format (docs/protocol/rest.md, sections 1.4
/// and 1.6).
final class Replies: Sendable {
  private let api: HubAPI
  let trackingID: TrackingID
  /// Whether the request was received over TLS.
  private let isSecure: Bool

  init(to request: HTTPRequest, api: HubAPI) {
    self.api = api
    trackingID = TrackingID(from: request.headers.bytes(WireName.trackingID))
    isSecure = request.isSecure
  }

  /// An empty reply with the service's content type.
  func empty(_ status: HTTPStatus) -> HTTPResponse {
    document(status, [])
  }

  /// An Atom document.
  func atom(
    _ type: String, _ document: String, status: HTTPStatus = .ok
  ) -> HTTPResponse {
    self.document(status, Array(document.utf8), type: type)
  }

  /// A JSON document with its own content type, which the original does not have.
  func json(_ body: [UInt8], status: HTTPStatus = .ok) -> HTTPResponse {
    document(status, body, type: WireName.json)
  }

  /// An empty reply without a content type.
  func bare(_ status: HTTPStatus) -> HTTPResponse {
    var response = HTTPResponse(status, body: .bytes([]))
    addCommon(to: &response)
    return response
  }

  /// XML or, as recorded, the JSON of an installation with the content type of XML.
  func document(
    _ status: HTTPStatus, _ body: [UInt8], type: String = WireName.xml
  ) -> HTTPResponse {
    var response = HTTPResponse(status, body: .bytes(body))
    response.headers.reserve(fields: 6, bytes: 256)
    response.headers.add(WireName.contentType, type)
    addCommon(to: &response)
    return response
  }

  /// An error reply: the error document, or an empty body if the failure has no text.
  func failure(_ failure: HubFailure) -> HTTPResponse {
    let status = HTTPStatus(rawValue: failure.status)
    var response: HTTPResponse
    if let message = failure.message {
      let envelope = ErrorEnvelope(
        code: failure.status, message: message, trackingID: trackingID.description)
      response = document(status, Array(envelope.xml(at: api.service.clock.now()).utf8))
    } else {
      response = bare(status)
    }
    if let seconds = failure.retryAfter {
      response.headers.add(WireName.retryAfter, String(seconds))
    }
    if let hint = failure.hint {
      response.headers.add(WireName.reason, Self.headerText(hint))
    }
    return response
  }

  /// The text in a form safe for headers, since it may contain names chosen by a caller: printable
  /// ASCII only, within the line limit of proxies.
  private static func headerText(_ text: String) -> String {
    String(
      decoding: text.unicodeScalars.prefix(500).map {
        (0x20...0x7E).contains($0.value) ? UInt8($0.value) : UInt8(ascii: "?")
      }, as: UTF8.self)
  }

  private func addCommon(to response: inout HTTPResponse) {
    response.headers.add("Server", api.configuration.serverName)
    trackingID.add(to: &response.headers, as: WireName.trackingID)
    TrackingID().add(to: &response.headers, as: WireName.correlationID)
    if isSecure { response.headers.add("Strict-Transport-Security", "max-age=2592000") }
  }
}

/// The id of a request in its reply, by which it can be found in a log.
struct TrackingID: CustomStringConvertible {
  private enum Form {
    case generated(high: UInt64, low: UInt64)
    /// As the client spelled it.
    case received(String)
  }

  private let form: Form

  /// A UUID in its 36-character form.
  var description: String {
    switch form {
    case .generated(let high, let low): UUIDText.text(high: high, low: low)
    case .received(let text): text
    }
  }

  /// Adds a header field with the id.
  func add(to headers: inout HTTPHeaders, as name: String) {
    switch form {
    case .generated(let high, let low): headers.add(name, uuid: (high, low))
    case .received(let text): headers.add(name, text)
    }
  }

  /// A new id.
  init() { form = Self.next() }

  /// The client's own id if it is a UUID, otherwise a new one: values from outside are only
  /// repeated in headers and documents if they are harmless there.
  init(from header: ArraySlice<UInt8>?) {
    if let header, header.count == 36, case let text = String(decoding: header, as: UTF8.self),
      UUID(uuidString: text) != nil
    {
      form = .received(text)
    } else {
      form = Self.next()
    }
  }

  // Every reply carries two of these. They need not be secret, so they are a scrambled counter with
  // a random start: the system's random source costs a few system calls each time.
  private static let start = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
  private static let count = Atomic<UInt64>(0)

  private static func next() -> Form {
    let number = count.add(1, ordering: .relaxed).newValue
    // The version and variant bits of a random UUID (RFC 9562, version 4).
    let high = scrambled(start.0 &+ number) & ~0xF000 | 0x4000
    let low = scrambled(start.1 ^ number) & ~(0b11 << 62) | 0b10 << 62
    return .generated(high: high, low: low)
  }

  /// SplitMix64's finalizer: bijective, with neighboring values far apart.
  private static func scrambled(_ value: UInt64) -> UInt64 {
    var bits = value &* 0x9E37_79B9_7F4A_7C15
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return bits ^ (bits >> 31)
  }
}
