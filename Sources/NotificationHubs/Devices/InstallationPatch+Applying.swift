import Wire

extension InstallationPatch {
  /// The installation with all operations applied in order, checked as ``Installation/validated()``
  /// does. The hub answers 400 with what this throws, and nothing has changed.
  package func applied(
    to installation: Installation
  ) throws(WireFormatError) -> Installation {
    try changing(installation).validated()
  }

  /// As ``applied(to:)`` without looking at the result.
  package func changing(
    _ installation: Installation
  ) throws(WireFormatError) -> Installation {
    var result = installation
    for operation in operations { try operation.apply(to: &result) }
    return result
  }
}

extension InstallationPatch.Operation {
  private var isRemoval: Bool { verb == .remove }

  fileprivate func apply(to installation: inout Installation) throws(WireFormatError) {
    switch (path[0].lowercased(), path.count) {
    case ("pushchannel", 1):
      guard !isRemoval else { throw fault("'PushChannel' cannot be removed") }
      let (channel, isText) = try PushChannel.decode(
        try given(), platform: installation.platform)
      installation.pushChannel = channel
      installation.pushChannelExpired = false
      installation.writesSubscriptionAsText = isText
    case ("userid", 1):
      let userID = isRemoval ? nil : try text()
      installation.userID = userID == "" ? nil : userID
    case ("tags", 1...2): try apply(to: &installation.tags, at: path.dropFirst())
    case ("pushvariables", 1): installation.pushVariables = isRemoval ? [:] : try map()
    case ("pushvariables", 2):
      installation.pushVariables[path[1]] = isRemoval ? nil : try text()
    case ("templates", _): try apply(to: &installation.templates, at: path.dropFirst())
    case ("secondarytiles", 1):
      if verb != .add { installation.secondaryTiles = [:] }
      guard !isRemoval else { return }
      installation.secondaryTiles.merge(try SecondaryTile.decode(try members())) { $1 }
    case ("secondarytiles", 2...): try apply(to: &installation.secondaryTiles)
    default: throw unknownPath
    }
  }

  private func apply(to tiles: inout [String: SecondaryTile]) throws(WireFormatError) {
    let name = path[1]
    if path.count == 2 {
      tiles[name] = isRemoval ? nil : try SecondaryTile.decode(try structure())
      return
    }
    guard var tile = tiles[name] else { throw fault("there is no such secondary tile") }
    let rest = path.dropFirst(2)
    switch (path[2].lowercased(), rest.count) {
    case ("pushchannel", 1):
      guard !isRemoval else { throw fault("'PushChannel' cannot be removed") }
      tile.pushChannel = try text()
      tile.pushChannelExpired = false
    case ("tags", 1...2): try apply(to: &tile.tags, at: rest.dropFirst())
    case ("templates", _): try apply(to: &tile.templates, at: rest.dropFirst())
    default: throw unknownPath
    }
    tiles[name] = tile
  }

  /// `rest` begins with the template's name, or is empty for all of them.
  private func apply(
    to templates: inout [String: PushTemplate], at rest: ArraySlice<String>
  ) throws(WireFormatError) {
    guard let name = rest.first else {
      // As with all tags: `add` takes nothing away.
      if verb != .add { templates = [:] }
      guard !isRemoval else { return }
      templates.merge(try PushTemplate.decode(try members())) { $1 }
      return
    }
    guard let part = rest.dropFirst().first else {
      templates[name] = isRemoval ? nil : try PushTemplate.decode(try structure())
      return
    }
    guard var template = templates[name] else { throw fault("there is no such template") }
    switch (part.lowercased(), rest.count) {
    case ("body", 2):
      guard !isRemoval else { throw fault("'Body' cannot be removed") }
      template.body = try text()
    case ("expiry", 2): template.expiry = isRemoval ? nil : try text()
    case ("headers", 2): template.headers = isRemoval ? [:] : try map()
    case ("tags", 2...3): try apply(to: &template.tags, at: rest.dropFirst(2))
    default: throw unknownPath
    }
    templates[name] = template
  }

  /// `rest` is empty for the whole list, or names one tag.
  private func apply(
    to tags: inout [Tag], at rest: ArraySlice<String>
  ) throws(WireFormatError) {
    if let name = rest.first {
      let tag = Tag(rawValue: name)
      if isRemoval {
        tags.removeAll { $0 == tag }
      } else if !tags.contains(tag) {
        tags.append(tag)
      }
      return
    }
    if verb != .add { tags = [] }
    guard !isRemoval else { return }
    for tag in try givenTags() where !tags.contains(tag) {
      // Well before the quadratic search could be felt; the exact limit is checked at the end.
      guard tags.count < 10 * Tag.maximumCount else { throw fault("too many tags") }
      tags.append(tag)
    }
  }

  private func givenTags() throws(WireFormatError) -> [Tag] {
    var value = try given()
    if case .string(let text) = value {
      guard text.trimmingBlanks.utf8.first == UInt8(ascii: "[") else {
        return [Tag(rawValue: text)]
      }
      value = try JSONValue.parse(text.utf8)
    }
    guard let tags = InstallationMembers.tags(value) else {
      throw fault("the value must be a tag or an array of tags")
    }
    return tags
  }

  private func given() throws(WireFormatError) -> JSONValue {
    guard let value else { throw fault("the value is missing") }
    return value
  }

  private func text() throws(WireFormatError) -> String {
    guard let text = try given().scalarText else { throw fault("the value must be a text") }
    return text
  }

  /// The value itself, or the JSON that its text holds.
  private func structure() throws(WireFormatError) -> JSONValue {
    let value = try given()
    guard case .string(let text) = value else { return value }
    return try JSONValue.parse(text.utf8)
  }

  private func members() throws(WireFormatError) -> [JSONValue.Member] {
    guard case .object(let list) = try structure() else {
      throw fault("the value must be an object")
    }
    return list
  }

  private func map() throws(WireFormatError) -> [String: String] {
    guard let map = InstallationMembers.map(try structure()) else {
      throw fault("the value must be an object of texts")
    }
    return map
  }

  private var unknownPath: WireFormatError { fault("the path is not known") }

  private func fault(_ what: String) -> WireFormatError {
    .body("Operation '\(verb.rawValue)' on '/\(path.joined(separator: "/"))': \(what).")
  }
}
