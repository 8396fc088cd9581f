import Type from 'typebox'
import { Image, Price } from '../catalogue.ts'
import { imageNamePattern, imageSourcePattern } from '../names.ts'
import { defineRoutes } from '../route.ts'
import { body, Empty, PlainText, wholeList } from '../schema.ts'

/** Operator routes for images and prices. */

const ImageName = Type.String({
  format: 'image-name',
  pattern: imageNamePattern,
  examples: ['ubuntu24.04-nvidia:latest'],
})
/** Slashes are not allowed, because a source is a file name, not a path. */
const ImageSourceValue = Type.Union([
  Type.String({ format: 'image-source', pattern: imageSourcePattern, maxLength: 128 }),
  Type.Integer({ minimum: 0 }),
])
const LocationNames = Type.Array(Type.String({ minLength: 1, maxLength: 100 }), { maxItems: 100 })

export const adminCatalogueRoutes = defineRoutes({
  adminImageList: {
    method: 'GET',
    path: '/v0.1/admin/images',
    tag: 'Operators',
    summary: 'List images',
    access: 'operator',
    response: wholeList('AdminImageList', Image),
  },
  adminImageCreate: {
    method: 'POST',
    path: '/v0.1/admin/images',
    tag: 'Operators',
    summary: 'Import an image',
    access: 'operator',
    body: body('ImageCreate', {
      name: ImageName,
      description: Type.Optional(PlainText({ maxLength: 500 })),
      tags: Type.Optional(Type.Array(PlainText({ minLength: 1, maxLength: 60 }), { maxItems: 30 })),
      locations: LocationNames,
      source: Type.Optional(
        Type.Record(Type.String({ maxLength: 60 }), ImageSourceValue, {
          maxProperties: 20,
          description:
            'Selects an image that is registered in the engine, by fields of its source such as `file`. The other fields are copied from that image. Values are names, not paths.',
        }),
      ),
    }),
    response: Image,
    errors: ['already_exists'],
  },
  adminImageUpdate: {
    method: 'PATCH',
    path: '/v0.1/admin/images/{image_id}',
    tag: 'Operators',
    summary: 'Change the locations of an image',
    access: 'operator',
    body: body('ImageUpdate', { locations: LocationNames }),
    response: Image,
  },
  adminImageDelete: {
    method: 'DELETE',
    path: '/v0.1/admin/images/{image_id}',
    tag: 'Operators',
    summary: 'Remove an image',
    access: 'operator',
    response: Empty,
    errors: ['conflict'],
  },
  adminPriceList: {
    method: 'GET',
    path: '/v0.1/admin/prices',
    tag: 'Operators',
    summary: 'List current prices',
    access: 'operator',
    response: wholeList('AdminPriceList', Price),
  },
  adminPriceSet: {
    method: 'PUT',
    path: '/v0.1/admin/prices',
    tag: 'Operators',
    summary: 'Set prices that apply from now on',
    description: 'Products that are not listed keep their price.',
    access: 'operator',
    body: body('PriceSet', {
      items: Type.Array(Type.Object({ ...Price.properties }, { additionalProperties: false }), {
        minItems: 1,
        maxItems: 100,
      }),
    }),
    response: wholeList('PriceSetResult', Price),
  },
})
