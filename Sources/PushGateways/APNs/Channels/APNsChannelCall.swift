import Foundation
import HTTP2

/// One request about channels, as it goes over the wire.
struct APNsChannelCall: Sendable {
  let method: String
  let path: String
  /// `nil` where the request names no channel.
  var channel: String?
  var fields: [HTTP2Field] = []
  var body: [UInt8] = []
  /// The same on every try, so that APNs' log shows them as one.
  let requestID = UUID().uuidString.lowercased()

  init(method: String, path: String, channel: String? = nil, body: [UInt8] = []) {
    self.method = method
    self.path = path
    self.channel = channel
    self.body = body
  }

  /// Places in the list of reply headers.
  private static let headers = [
    "retry-after", "apns-channel-id", "apns-request-id", "apns-unique-id",
  ]
  static let retryAfter = 0

  /// What of a good answer counts.
  struct Answer: Sendable {
    let body: [UInt8]
    let channelID: String?
    let requestID: String?
    let uniqueID: String?

    init(_ answers: HTTP2ReplyBatch) {
      body = Array(answers.body(of: 0))
      channelID = answers.value(ofHeader: 1, in: 0)
      requestID = answers.value(ofHeader: 2, in: 0)
      uniqueID = answers.value(ofHeader: 3, in: 0)
    }
  }

  /// - Parameter token: The provider token; `nil` for a connection with a client certificate.
  func wire(authority: String, token: String?) -> HTTP2RequestBatch {
    var wire = HTTP2RequestBatch(
      method: method, authority: authority, replyHeaders: Self.headers, keepsSuccessBodies: true)
    var all = fields
    all.append(HTTP2Field("apns-request-id", requestID, indexing: .never))
    if let channel { all.append(HTTP2Field("apns-channel-id", channel)) }
    if !body.isEmpty { all.append(HTTP2Field("content-type", "application/json")) }
    if let token { all.append(HTTP2Field("authorization", "bearer " + token, indexing: .never)) }
    let set = wire.addFieldSet(all)
    let place = wire.write(path)
    let content = body.isEmpty ? HTTP2ByteRange.empty : wire.write { $0 += body }
    wire.addRequest(path: place, fields: set, body: content)
    return wire
  }
}
