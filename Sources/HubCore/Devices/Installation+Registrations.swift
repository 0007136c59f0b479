package import NotificationHubs

extension Installation {
  /// The registrations that are derived from it, exactly as docs/protocol/rest.md, section 4.6
  /// specifies: one native registration and one for each template, in the order of their names; the
  /// same for each secondary tile.
  ///
  /// A channel that the push service has reported dead has no registrations until the app sends a
  /// new one, so that no patch revives it.
  package var registrationDrafts: [RegistrationDraft] {
    var implicit = [Tag.installation(installationID)]
    if let userID { implicit.append(.user(userID)) }
    let common = implicit + tags
    var drafts: [RegistrationDraft] = []
    if !pushChannelExpired {
      drafts += self.drafts(channel: pushChannel, tags: common, templates: templates, tile: nil)
    }
    for (id, tile) in secondaryTiles.sorted(by: { $0.key < $1.key }) where !tile.pushChannelExpired
    {
      drafts += self.drafts(
        channel: .handle(tile.pushChannel), tags: common + tile.tags, templates: tile.templates,
        tile: id)
    }
    return drafts
  }

  private func drafts(
    channel: PushChannel, tags: [Tag], templates: [String: PushTemplate], tile: String?
  ) -> [RegistrationDraft] {
    let native = RegistrationDraft(
      kind: .native, platform: platform, channel: channel, tags: Self.unique(tags),
      pushVariables: pushVariables, expiresAt: expirationTime, secondaryTileName: tile)
    return [native]
      + templates.sorted { $0.key < $1.key }.map { name, template in
        var draft = native
        // The tags are in the registration; without them equal templates are stored once.
        var shared = template
        shared.tags = []
        draft.kind = .template(shared, name: name)
        draft.tags = Self.unique(tags + template.tags + [Tag(rawValue: name)])
        return draft
      }
  }

  /// Removes repeated spellings of a tag.
  private static func unique(_ tags: [Tag]) -> [Tag] {
    // There are at most some sixty: a linear search is faster than hashing.
    var seen: [String] = []
    seen.reserveCapacity(tags.count)
    return tags.filter { tag in
      let folded = tag.folded
      guard !seen.contains(folded) else { return false }
      seen.append(folded)
      return true
    }
  }
}
