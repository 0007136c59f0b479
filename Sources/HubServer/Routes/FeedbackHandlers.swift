import Foundation
import HTTPServer
import HubCore
import NotificationHubs
import Wire

/// Feedback about handles (docs/protocol/rest.md, section 6), served the way Azure Blob Storage
/// serves a container: a list of blobs, one per hour, and the blobs. Access takes a signature in
/// the URL, which `GET /{hub}/feedbackcontainer` issues.
struct FeedbackHandlers: RouteHandlers {
  let api: HubAPI

  /// The fields of the URL, named like those of a storage signature, because clients parse them.
  private enum Field {
    static let policy = "si"
    static let expiry = "se"
    static let signature = "sig"
  }

  func container(_ call: HubCall) async throws -> HTTPResponse {
    let token = try await service.feedbackToken(
      hub: call.hub, resource: signedResource(of: call.hub.name, call.request))
    let expiry = WireDate.seconds(token.expiresAt).percentEncoded
    let signature = Data(token.signature).base64EncodedString().percentEncoded
    let url =
      "\(containerAddress(of: call.hub.name, call.request))?sv=2020-04-08&sr=c&sp=rl"
      + "&\(Field.policy)=\(token.rawKeyName)&\(Field.expiry)=\(expiry)"
      + "&\(Field.signature)=\(signature)"
    return call.replies.document(
      .ok, Array(url.utf8), type: "text/plain; charset=utf-8")
  }

  /// The signature in a container URL, converted back to the token from which it was made.
  func containerToken(of hub: String, _ request: HTTPRequest) throws(HubFailure) -> String {
    func raw(_ name: String) -> String? {
      request.target.queryItem(name)?.rawValue.map { String(decoding: $0, as: UTF8.self) }
    }
    guard let policy = raw(Field.policy), let signature = raw(Field.signature) else {
      throw HubFailure.missingToken
    }
    guard let text = request.target.queryItem(Field.expiry)?.value,
      let expiry = WireDate.parse(text),
      let seconds = Int64(exactly: expiry.timeIntervalSince1970.rounded(.down))
    else { throw HubFailure.malformedToken }
    let resource = signedResource(of: hub, request).percentEncoded
    return "SharedAccessSignature sr=\(resource)&sig=\(signature)&se=\(seconds)&skn=\(policy)"
  }

  /// The resource that the signature covers: the same for every spelling of the hub's name and for
  /// either scheme.
  private func signedResource(of hub: String, _ request: HTTPRequest) -> String {
    "https://\(api.host(of: request))/\(hub)/$feedback".lowercased()
  }

  private func containerAddress(of hub: String, _ request: HTTPRequest) -> String {
    "\(api.scheme(of: request))://\(api.host(of: request))/\(hub)/$feedback"
  }

  func list(_ call: HubCall) async throws -> HTTPResponse {
    let (hub, request) = (call.hub, call.request)
    let address = containerAddress(of: hub.name, request)
    var text = "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\""
    text += "\(api.scheme(of: request))://\(api.host(of: request))/\" ContainerName=\""
    text += "\(hub.name)/$feedback\"><Blobs>"
    for hour in try await service.feedbackHours(hub: hub) {
      let name = Self.blobName(hour.hour)
      text += "<Blob><Name>\(name)</Name><Url>\("\(address)/\(name)".xmlEscaped)</Url><Properties>"
      text += "<Last-Modified>\(Self.httpDate(hour.modifiedAt))</Last-Modified>"
      text += "<Etag>\(Self.tag(hour))</Etag><Content-Type>application/xml</Content-Type>"
      text += "<BlobType>BlockBlob</BlobType></Properties></Blob>"
    }
    text += "</Blobs><NextMarker/></EnumerationResults>"
    return call.replies.document(.ok, Array(text.utf8), type: "application/xml")
  }

  func read(_ call: HubCall) async throws -> HTTPResponse {
    let hub = call.hub
    guard
      let hour = try await service.feedbackHours(hub: hub)
        .first(where: { Self.blobName($0.hour) == call.id })
    else { throw HubFailure(status: 404, message: "The specified blob does not exist.") }
    var response = call.replies.document(.ok, [], type: "application/xml; charset=utf-8")
    response.headers.add("Last-Modified", Self.httpDate(hour.modifiedAt))
    response.headers.add("ETag", "\"\(Self.tag(hour))\"")
    response.headers.add("x-ms-blob-type", "BlockBlob")
    let service = service
    response.body = .stream { writer in
      var last: Int64 = 0
      while let page = try await service.feedback(hub: hub, hour: hour.hour, after: last) {
        try await writer.write(page.documents.map(\.xml).joined())
        last = page.last
      }
    }
    return response
  }

  /// `2030-01-05T10.xml`
  private static func blobName(_ hour: Int64) -> String {
    WireDate.seconds(Date(timeIntervalSince1970: Double(hour) * 3600)).prefix(13) + ".xml"
  }

  /// An etag that changes whenever feedback is added to the hour.
  private static func tag(_ hour: FeedbackHour) -> String {
    "\(hour.count)-\(Int64(hour.modifiedAt.timeIntervalSince1970 * 1000))"
  }

  /// `Sat, 05 Jan 2030 10:00:00 GMT` (RFC 9110, section 5.6.7).
  private static func httpDate(_ date: Date) -> String {
    WireDate.http(Int(date.timeIntervalSince1970.rounded(.down)))
  }
}
