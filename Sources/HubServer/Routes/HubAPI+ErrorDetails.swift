import Foundation
import HTTPServer
import HubCore
import NotificationHubs

/// The errors of a notification, device by device: what `PnsErrorDetailsUri` of its telemetry leads
/// to (spec `rest-api.md` 5.8), as a list of the documents that feedback consists of (section 6).
extension HubAPI {
  /// How long the address in telemetry opens the list, in seconds. Every look at the telemetry
  /// gives a new one.
  private static let lifetime: TimeInterval = 3600
  private static let pageSize = 500

  /// The list's address, with a token for it in the query, as the original's leads to a blob that
  /// anyone can read who knows it.
  ///
  /// - Returns: `nil` when the hub has no policy left that may see it.
  func errorDetailsAddress(of id: NotificationID, _ call: HubCall) async throws -> String? {
    let resource = address(of: call.hub, "messages/\(id.rawValue)/errors", call.request)
    let token = try await service.token(
      for: resource, hub: call.hub,
      right: HubOperation.getNotificationErrors.right(for: call.request.target),
      lifetime: Self.lifetime)
    return token.map { "\(resource)?\($0.fields)" }
  }

  func getNotificationErrors(_ call: HubCall) async throws -> HTTPResponse {
    let id = NotificationID(rawValue: try call.requiredID())
    let first = try await service.errors(
      of: id, hub: call.hub, after: 0, limit: Self.pageSize)
    var response = call.replies.document(.ok, [])
    response.body = .stream { [service] writer in
      var page = first
      while true {
        var text = ""
        for error in page.feedback { text += error.xml + "\n" }
        if !text.isEmpty { try await writer.write(text) }
        guard let next = page.next else { return }
        page = try await service.errors(
          of: id, hub: call.hub, after: next, limit: Self.pageSize)
      }
    }
    return response
  }
}

extension SharedAccessSignature {
  /// The token's fields as a query.
  fileprivate var fields: Substring { text.drop { $0 != " " }.dropFirst() }
}

extension HTTPRequest {
  /// The token in the query of an address that opens itself, written as a header; `nil` when the
  /// query holds none.
  var tokenInQuery: String? {
    guard target.queryItem("sig") != nil, let query = target.rawQuery else { return nil }
    return "SharedAccessSignature " + String(decoding: query, as: UTF8.self)
  }
}
