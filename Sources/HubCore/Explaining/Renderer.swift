import NotificationHubs

/// Renders one notification for single devices, as delivery does.
struct Renderer {
  /// The parsed form of a body to render.
  enum Form {
    case native
    /// - Parameter isShared: Whether it is the same for every device, regardless of push variables.
    case template(CompiledTemplate, isShared: Bool)
    case broken(String)

    var isShared: Bool { if case .template(_, isShared: false) = self { false } else { true } }
  }

  private let messages: MessageCache
  private let properties: TemplateProperties

  init(_ request: NotificationRequest) {
    messages = MessageCache(request)
    let read = request.format == .template ? try? TemplateProperties(json: request.body) : nil
    properties = read ?? TemplateProperties([:])
  }

  /// - Parameter template: `nil` for a native send.
  func form(of template: PushTemplate?) -> Form {
    guard let template else { return .native }
    do throws(TemplateError) {
      let compiled = try CompiledTemplate(template)
      return .template(compiled, isShared: !compiled.needsPushVariables(with: properties))
    } catch {
      return .broken(error.description)
    }
  }

  /// - Returns: The push, and the properties that the template uses and that have no value; `nil`
  ///   for a template that cannot be used.
  func render(
    _ form: Form, pushVariables: [String: String], platform: PushPlatform
  ) -> (body: PushBody, missing: [String])? {
    switch form {
    case .native: return (messages.native(platform), [])
    case .broken: return nil
    case .template(let compiled, _):
      let known = Set(pushVariables.keys.map { $0.lowercased() })
      let missing = compiled.propertyNames.filter {
        properties.values[$0] == nil && !known.contains($0)
      }
      let body = messages.render(compiled, pushVariables: pushVariables, platform: platform)
      return (body, missing)
    }
  }
}

extension NotificationExplanation.Rendering {
  init(_ body: PushBody, missing: [String], platform: PushPlatform) {
    self.init(
      payload: String(decoding: body.bytes, as: UTF8.self), bytes: body.bytes.count,
      limit: PayloadSize.limit(for: platform, headers: body.headers), missing: missing)
  }
}

extension PushBody {
  /// Whether the push service will certainly refuse it because of its size; the same rule applies
  /// when sends are accepted.
  func isTooLarge(for platform: PushPlatform) -> Bool {
    PayloadSize.excess(of: bytes, for: platform, headers: headers) != nil
  }
}
