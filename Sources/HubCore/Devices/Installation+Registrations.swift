package import NotificationHubs
import Wire

extension Installation {
  /// The registrations that are derived from it, exactly as docs/protocol/rest.md, section 4.6
  /// specifies: one native registration and one for each template, in the order of their names; the
  /// same for each secondary tile.
  ///
  /// A channel that the push service has reported dead has no registrations until the app sends a
  /// new one, so that no patch revives it.
  package var registrationDrafts: [RegistrationDraft] {
    var common = TagList(.installation(installationID), userID.map(Tag.user), room: tags.count)
    common.add(tags)
    var drafts: [RegistrationDraft] = []
    drafts.reserveCapacity(1 + templates.count)
    if !pushChannelExpired {
      appendDrafts(channel: pushChannel, tags: common, templates: templates, tile: nil, to: &drafts)
    }
    // Early, because the closure below would copy the whole installation.
    if secondaryTiles.isEmpty { return drafts }
    secondaryTiles.forEachInKeyOrder { id, tile in
      if tile.pushChannelExpired { return }
      var common = common
      common.add(tile.tags)
      appendDrafts(
        channel: .handle(tile.pushChannel), tags: common, templates: tile.templates, tile: id,
        to: &drafts)
    }
    return drafts
  }

  private func appendDrafts(
    channel: PushChannel, tags: TagList, templates: [String: PushTemplate], tile: String?,
    to drafts: inout [RegistrationDraft]
  ) {
    let native = RegistrationDraft(
      kind: .native, platform: platform, channel: channel, tags: tags.tags,
      pushVariables: pushVariables, expiresAt: expirationTime, secondaryTileName: tile)
    drafts.append(native)
    templates.forEachInKeyOrder { name, template in
      var tags = tags
      tags.add(template.tags)
      tags.add(Tag(rawValue: name))
      // The tags are in the registration; without them equal templates are stored once.
      var shared = template
      shared.tags = []
      var draft = native
      draft.kind = .template(shared, name: name)
      draft.tags = tags.tags
      drafts.append(draft)
    }
  }
}

/// Tags without repeated spellings.
private struct TagList {
  private(set) var tags: [Tag]
  /// Those of ``tags`` that are not implicit. There are at most some sixty: a linear search is faster
  /// than hashing.
  private var folded: [String] = []

  /// - Parameter room: The number of tags that will be added, or fewer.
  init(_ installation: Tag, _ user: Tag?, room: Int) {
    tags = []
    // A template adds its own and its name.
    tags.reserveCapacity(room + 4)
    folded.reserveCapacity(room + 2)
    tags.append(installation)
    if let user { tags.append(user) }
  }

  mutating func add(_ tag: Tag) {
    if tag.isImplicit {
      // Only the name of a template can be one.
      if !tags.contains(tag) { tags.append(tag) }
      return
    }
    let folded = tag.folded
    guard !self.folded.contains(folded) else { return }
    self.folded.append(folded)
    tags.append(tag)
  }

  mutating func add(_ tags: [Tag]) { for tag in tags { add(tag) } }
}
