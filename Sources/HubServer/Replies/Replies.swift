import Foundation
import HTTPServer
import HubCore
import NotificationHubs

/// Words the replies to one request the way the service does (spec `rest-api.md` 1.4, 1.6).
struct Replies {
  let configuration: HubAPIConfiguration
  let trackingID: TrackingID
  let now: @Sendable () -> Date
  /// Whether the request came over TLS.
  var isSecure = false

  /// An empty reply, typed as the service types it.
  func empty(_ status: HTTPStatus) -> HTTPResponse {
    document(status, [])
  }

  /// An Atom document.
  func atom(
    _ type: String, _ document: String, status: HTTPStatus = .ok
  ) -> HTTPResponse {
    self.document(status, Array(document.utf8), type: type)
  }

  /// JSON under its own name: what the original does not have.
  func json(_ body: [UInt8], status: HTTPStatus = .ok) -> HTTPResponse {
    var response = HTTPResponse(status, body: .bytes(body))
    response.headers.add(WireName.contentType, WireName.json)
    addCommon(to: &response)
    return response
  }

  /// An empty reply without a type.
  func bare(_ status: HTTPStatus) -> HTTPResponse {
    var response = HTTPResponse(status, body: .bytes([]))
    addCommon(to: &response)
    return response
  }

  /// XML, or, as recorded, the JSON of an installation under the name of XML.
  func document(
    _ status: HTTPStatus, _ body: [UInt8], type: String = WireName.xml
  ) -> HTTPResponse {
    var response = HTTPResponse(status, body: .bytes(body))
    response.headers.add(WireName.contentType, type)
    addCommon(to: &response)
    return response
  }

  /// A refusal: the error document, or nothing at all where the failure has no text.
  func failure(_ failure: HubFailure) -> HTTPResponse {
    let status = HTTPStatus(rawValue: failure.status)
    var response: HTTPResponse
    if let message = failure.message {
      let envelope = ErrorEnvelope(
        code: failure.status, message: message, trackingID: trackingID.description)
      response = document(status, Array(envelope.xml(at: now()).utf8))
    } else {
      response = bare(status)
    }
    if let seconds = failure.retryAfter {
      response.headers.add(WireName.retryAfter, String(seconds))
    }
    return response
  }

  private func addCommon(to response: inout HTTPResponse) {
    response.headers.add("Server", configuration.serverName)
    response.headers.add(WireName.trackingID, trackingID.description)
    response.headers.add(WireName.correlationID, TrackingID().description)
    if isSecure { response.headers.add("Strict-Transport-Security", "max-age=2592000") }
  }
}
