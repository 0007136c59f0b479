import NotificationHubs
import Synchronization

/// The messages of one notification: each is made once and shared by all pages, unless push
/// variables of a device go into it.
final class MessageBook: Sendable {
  /// What a page needs to know of one template.
  enum Entry: Sendable {
    /// The same for all devices.
    case shared(PushBody)
    /// Differs with a device's push variables.
    case individual(CompiledTemplate)
    /// Does not compile any more; a store of an older build may hold such a one.
    case broken(String)
  }

  private struct Key: Hashable {
    let template: Int64
    let platform: PushPlatform
  }

  /// Beyond so many different templates they are made afresh page by page.
  private static let capacity = 512

  private let request: NotificationRequest
  private let properties: TemplateProperties
  private let entries = Mutex<[Key: Entry]>([:])

  init(_ request: NotificationRequest) {
    self.request = request
    // The body has been checked when the notification was accepted.
    let read = request.format == .template ? try? TemplateProperties(json: request.body) : nil
    properties = read ?? TemplateProperties([:])
  }

  /// The message of a native send.
  func native(_ platform: PushPlatform) -> PushBody {
    filled(PushBody(bytes: request.body), platform)
  }

  func entry(_ stored: StoredTemplate, platform: PushPlatform) -> Entry {
    let key = Key(template: stored.id, platform: platform)
    if let known = entries.withLock({ $0[key] }) { return known }
    let made = make(stored.template, platform)
    entries.withLock { entries in
      if entries.count >= Self.capacity { entries.removeAll() }
      entries[key] = made
    }
    return made
  }

  private func make(_ template: PushTemplate, _ platform: PushPlatform) -> Entry {
    do throws(TemplateError) {
      let compiled = try CompiledTemplate(template)
      if compiled.needsPushVariables(with: properties) { return .individual(compiled) }
      return .shared(filled(compiled.render(properties), platform))
    } catch {
      return .broken(error.description)
    }
  }

  func render(
    _ template: CompiledTemplate, pushVariables: [String: String], platform: PushPlatform
  ) -> PushBody {
    filled(template.render(properties, pushVariables: pushVariables), platform)
  }

  /// The request's headers fill what the template leaves open (docs/protocol/templates.md,
  /// section 7).
  private func filled(_ body: PushBody, _ platform: PushPlatform) -> PushBody {
    var body = body
    for (name, value) in request.headers where PassThroughHeaders.isRead(by: platform, name) {
      if body.headers[name] == nil { body.headers[name] = value }
    }
    if platform == .apns, let text = body.headers[SendHeaderName.apnsExpiration],
      let seconds = Int64(text), seconds >= 0
    {
      body.headers[SendHeaderName.apnsExpiration] = nil
      body.expiry = body.expiry ?? seconds
    }
    body.expiry = body.expiry ?? request.expiry
    return body
  }
}
