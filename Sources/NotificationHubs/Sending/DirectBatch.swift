import Wire

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The body of a direct batch send: a notification and the devices to send it to
/// (docs/protocol/rest.md, section 5.5).
package struct DirectBatch: Hashable, Sendable {
  /// The maximum number of devices per send in the original.
  package static let maximumDevices = 1000

  package var notification: [UInt8]
  /// The media type of the notification's part; `nil` if it has none.
  package var contentType: String?
  /// The handles or, for browsers, subscriptions; at least one.
  package var devices: [PushChannel]

  package init(notification: [UInt8], contentType: String?, devices: [PushChannel]) {
    self.notification = notification
    self.contentType = contentType
    self.devices = devices
  }

  /// Decodes the body in any form that clients send.
  ///
  /// - Parameters:
  ///   - contentType: The header of the request, with the boundary.
  ///   - maximum: The maximum number of devices.
  /// - Throws: ``WireFormatError`` with the text of a 400.
  package init(
    _ body: some Collection<UInt8>, contentType: String, maximum: Int = maximumDevices
  ) throws(WireFormatError) {
    guard let boundary = MultipartBody.boundary(contentType) else {
      throw .body("A batch must be multipart/mixed with a boundary.")
    }
    let parts: [MultipartBody.Part]
    switch MultipartBody.parts(body, boundary: boundary) {
    case .success(let found): parts = found
    case .failure(.unclosed):
      throw .body(
        "The batch does not end with '--\(boundary)--'; it may have been cut off; nothing was "
          + "sent.")
    case .failure(.malformed):
      throw .body("The batch is no multipart body with the boundary '\(boundary)'.")
    }
    func part(_ name: String) -> MultipartBody.Part? {
      parts.first { part in
        MultipartBody.parameters(part.headers["content-disposition"] ?? "").contains {
          $0.name == "name" && $0.value.lowercased() == name
        }
      }
    }
    guard let notification = part("notification"), let list = part("devices") else {
      throw .body("A batch must have the parts 'notification' and 'devices'.")
    }
    guard case .array(let items) = try JSONValue.parse(list.body) else {
      throw .body("The part 'devices' must be a JSON array of handles.")
    }
    guard (1...max(maximum, 1)).contains(items.count) else {
      throw .body("A batch must name 1 to \(maximum) devices.")
    }
    var devices: [PushChannel] = []
    devices.reserveCapacity(items.count)
    for item in items {
      if case .string(let handle) = item {
        let handle = handle.trimmingBlanks
        guard !handle.isEmpty else { throw .body("A handle of the part 'devices' is empty.") }
        devices.append(.handle(handle))
      } else {
        devices.append(try PushChannel.decode(item, platform: .browser).channel)
      }
    }
    self.init(
      notification: Array(notification.body), contentType: notification.headers["content-type"],
      devices: devices)
  }

  /// Encodes the body of a request.
  /// - Parameter boundary: A text that does not occur in either part.
  package func encoded(boundary: String) -> [UInt8] {
    var list = JSONWriter(capacity: devices.count * 80)
    list.beginArray()
    for device in devices {
      switch device {
      case .handle(let text): list.string(text)
      case .subscription(let endpoint, let p256dh, let auth):
        list.value(PushChannel.subscriptionJSON(endpoint: endpoint, p256dh: p256dh, auth: auth))
      }
    }
    list.endArray()
    var out: [UInt8] = []
    func append(_ name: String, _ type: String, _ body: [UInt8]) {
      let head =
        "--\(boundary)\r\nContent-Type: \(type)\r\n"
        + "Content-Disposition: inline; name=\(name)\r\n\r\n"
      out.append(contentsOf: head.utf8)
      out.append(contentsOf: body)
      out.append(contentsOf: "\r\n".utf8)
    }
    append("notification", contentType ?? WireName.json, notification)
    append("devices", WireName.json, list.bytes)
    out.append(contentsOf: "--\(boundary)--\r\n".utf8)
    return out
  }
}
